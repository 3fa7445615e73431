"""From alike to clusters of alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .form import KIN, Form, are_copies, similarity


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """Two sources, by their `exact` digests, that are copies, or alike enough that one split must hold both."""

    a: str
    b: str
    copies: bool


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


@dataclass(frozen=True, slots=True)
class Place:
    """Which component a source is in, of copies and of kin. Copies are kin."""

    copies: str
    kin: str


def same_key(exacts: Sequence[str], copies: bool) -> list[Link]:
    """Links between all sources that hold a key which alone makes them copies, or kin."""
    first, *others = sorted(exacts)
    return [Link(first, other, copies) for other in others]


def compare(group: Iterable[Form]) -> list[Link]:
    """Of forms that share a band, enough links to connect all that copies connect, and all that kin connect.

    What is connected already is not compared again: a thousand copies cost a thousand comparisons.
    """
    remaining = sorted(group, key=lambda form: form.exact)
    copies = Components(form.exact for form in remaining)
    found = []
    while len({copies.of(form.exact) for form in remaining}) > 1:
        first, *remaining = remaining
        for other in remaining:
            if copies.of(first.exact) == copies.of(other.exact):
                continue
            if are_copies(first, other):
                copies.join(first.exact, other.exact)
                found.append(Link(first.exact, other.exact, True))
            elif similarity(first, other) >= KIN:
                found.append(Link(first.exact, other.exact, False))
    return found


def connect(links: Iterable[Link]) -> dict[str, Place]:
    """The place of each source that a link names; any other is alone."""
    links = list(links)
    nodes = {exact for link in links for exact in (link.a, link.b)}
    copies, kin = Components(nodes), Components(nodes)
    for link in links:
        kin.join(link.a, link.b)
        if link.copies:
            copies.join(link.a, link.b)
    copies_of, kin_of = copies.all(), kin.all()
    return {node: Place(copies_of[node], kin_of[node]) for node in nodes}
