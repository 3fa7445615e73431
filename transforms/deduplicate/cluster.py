"""From alike to clusters of alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.transforms.similarity.form import Form, Relation


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """Two sources, by their `exact` digests, between which a relation holds."""

    a: str
    b: str


class Components:
    """Nodes, and which of them joins have connected. A component is named after its smallest node."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._parent = {node: node for node in nodes}

    def join(self, a: str, b: str) -> None:
        low, high = sorted((self.of(a), self.of(b)))
        self._parent[high] = low

    def of(self, node: str) -> str:
        while (parent := self._parent[node]) != node:
            self._parent[node] = self._parent[parent]  # halves the path for the next one
            node = parent
        return node

    def all(self) -> dict[str, str]:
        """Each node -> its component. The order of nodes and joins does not matter."""
        return {node: self.of(node) for node in self._parent}


def same_key(exacts: Sequence[str]) -> list[Link]:
    """Links that connect all sources that hold a key of the relation."""
    first, *others = sorted(exacts)
    return [Link(first, other) for other in others]


def compare(group: Iterable[Form], relation: Relation) -> list[Link]:
    """Of forms that share a band, enough links to connect all that the relation connects.

    What is connected already is not compared again: a thousand copies cost a thousand comparisons.
    """
    remaining = sorted(group, key=lambda form: form.exact)
    components = Components(form.exact for form in remaining)
    found = []
    while len({components.of(form.exact) for form in remaining}) > 1:
        first, *remaining = remaining
        for other in remaining:
            if components.of(first.exact) != components.of(other.exact) and relation.holds(first, other):
                components.join(first.exact, other.exact)
                found.append(Link(first.exact, other.exact))
    return found


def connect(links: Iterable[Link]) -> dict[str, str]:
    """The component of each source that a link names; any other is alone."""
    links = list(links)
    components = Components(exact for link in links for exact in (link.a, link.b))
    for link in links:
        components.join(link.a, link.b)
    return components.all()


def component_of(form: Form, components: Mapping[str, str]) -> str:
    return components.get(form.exact, form.exact)
