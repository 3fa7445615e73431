"""From copies to clusters of copies."""

from __future__ import annotations

from collections.abc import Iterable

from .form import Form, are_copies


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


def links(group: Iterable[Form]) -> list[tuple[str, str]]:
    """Of forms that share a key, enough pairs of copies (by digest) to connect all that copies connect.

    What is connected already is not compared again: a thousand copies cost a thousand comparisons.
    """
    remaining = sorted(group, key=lambda form: form.exact)
    components = Components(form.exact for form in remaining)
    found = []
    while len({components.of(form.exact) for form in remaining}) > 1:
        first, *remaining = remaining
        for other in remaining:
            if components.of(first.exact) != components.of(other.exact) and are_copies(first, other):
                components.join(first.exact, other.exact)
                found.append((first.exact, other.exact))
    return found
