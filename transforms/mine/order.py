"""The order in which a closure's definitions are written, so that each comes after what it needs when it runs."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from .bindings import Definition
from .piece import Piece
from .tree import Symbol


def in_order(entry: Definition, pieces: Sequence[Piece]) -> list[Piece]:
    """Files in the order of their imports, the entry's last; in a file, its own order, unless it would not run."""
    ranks = {path: rank for rank, path in enumerate(_files(entry, pieces))}
    by_place = {(ranks[piece.definition.path], piece.definition.order): piece for piece in pieces}
    place = {piece.definition: position for position, piece in by_place.items()}
    waiting = _needed_first(pieces)
    dependents: dict[Definition, list[Definition]] = defaultdict(list)
    for definition, needed in waiting.items():
        for other in needed:
            dependents[other].append(definition)
    ready = [place[d] for d, needed in waiting.items() if not needed]
    heapq.heapify(ready)
    ordered: list[Piece] = []
    while ready:
        piece = by_place.pop(heapq.heappop(ready))
        ordered.append(piece)
        for dependent in dependents[piece.definition]:
            waiting[dependent].discard(piece.definition)
            if not waiting[dependent]:
                heapq.heappush(ready, place[dependent])
    return ordered + [piece for _, piece in sorted(by_place.items())]  # the rest need each other


def _needed_first(pieces: Sequence[Piece]) -> dict[Definition, set[Definition]]:
    """What each definition looks up while it is executed."""
    by_symbol: dict[Symbol, list[Definition]] = defaultdict(list)
    for piece in pieces:
        for name in piece.definition.names:
            by_symbol[Symbol(piece.definition.path, name)].append(piece.definition)
    waiting: dict[Definition, set[Definition]] = {}
    for piece in pieces:
        definition = piece.definition
        needed = {d for symbol in piece.eager for d in by_symbol.get(symbol, ())}
        # Of several statements about one name, only those above this one were there when it ran.
        waiting[definition] = {d for d in needed if d.path != definition.path or d.order < definition.order}
    return waiting


def _files(entry: Definition, pieces: Sequence[Piece]) -> list[str]:
    """Files of the closure, imported before importing; by path where they import each other."""
    needs: dict[str, set[str]] = defaultdict(set)
    for piece in pieces:
        needs[piece.definition.path] |= piece.files
    found: list[str] = []
    seen: set[str] = set()

    def visit(path: str) -> None:
        if path not in seen:
            seen.add(path)
            for other in sorted(needs[path]):
                visit(other)
            found.append(path)

    for path in (entry.path, *sorted(needs)):
        visit(path)
    return found
