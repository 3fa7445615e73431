"""Group forms into connected components of a relation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.transforms.similarity.form import Form, Relation


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """Two related sources, named by their `exact` digests."""

    a: str
    b: str


class Components:
    """Union-find over nodes. The name of a component is its smallest node."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._parent = {node: node for node in nodes}

    def join(self, a: str, b: str) -> None:
        low, high = sorted((self.of(a), self.of(b)))
        self._parent[high] = low

    def of(self, node: str) -> str:
        while (parent := self._parent[node]) != node:
            self._parent[node] = self._parent[parent]  # path halving
            node = parent
        return node

    def all(self) -> dict[str, str]:
        """Map each node to its component. The order of nodes and joins does not matter."""
        return {node: self.of(node) for node in self._parent}


def link_key_holders(exacts: Sequence[str]) -> list[Link]:
    """Links that connect all sources that share one key of the relation."""
    first, *others = sorted(exacts)
    return [Link(first, other) for other in others]


def link_similar(group: Iterable[Form], relation: Relation) -> list[Link]:
    """Links that connect every related pair among forms that share a band.

    Forms that are already connected are not compared again, so a thousand copies cost a thousand comparisons.
    """
    remaining = sorted(group, key=lambda form: form.exact)
    components = Components(form.exact for form in remaining)
    links = []
    while len({components.of(form.exact) for form in remaining}) > 1:
        first, *remaining = remaining
        for other in remaining:
            if components.of(first.exact) != components.of(other.exact) and relation.holds(first, other):
                components.join(first.exact, other.exact)
                links.append(Link(first.exact, other.exact))
    return links


def connect(links: Iterable[Link]) -> dict[str, str]:
    """Map each source that a link names to its component. Sources without a link are components of their own."""
    links = list(links)
    components = Components(exact for link in links for exact in (link.a, link.b))
    for link in links:
        components.join(link.a, link.b)
    return components.all()


def component_of(form: Form, components: Mapping[str, str]) -> str:
    return components.get(form.exact, form.exact)
