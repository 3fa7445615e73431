"""From pairs of copies to clusters of copies."""

from __future__ import annotations

from collections.abc import Iterable


def clusters(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each node -> the smallest node that edges connect it with. The order of neither matters."""
    parent = {node: node for node in nodes}

    def root(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]  # halves the path for the next one
            node = parent[node]
        return node

    for a, b in edges:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return {node: root(node) for node in parent}
