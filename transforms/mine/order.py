"""Order the definitions of a closure so that each follows the definitions that it needs when it is executed."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from .bindings import Definition
from .piece import Piece
from .tree import Symbol


def order_pieces(entry: Definition, pieces: Sequence[Piece]) -> list[Piece]:
    """Order by file (imported files first, the entry's last), then by place, except where that would not run."""
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
    return ordered + [piece for _, piece in sorted(by_place.items())]  # cycles stay in their order


def _needed_first(pieces: Sequence[Piece]) -> dict[Definition, set[Definition]]:
    """The definitions that each definition looks up while it is executed."""
    by_symbol: dict[Symbol, list[Definition]] = defaultdict(list)
    for piece in pieces:
        for name in piece.definition.names:
            by_symbol[Symbol(piece.definition.path, name)].append(piece.definition)
    waiting: dict[Definition, set[Definition]] = {}
    for piece in pieces:
        definition = piece.definition
        needed = {d for symbol in piece.eager for d in by_symbol.get(symbol, ())}
        # In the same file, only statements above this one had run before it.
        waiting[definition] = {d for d in needed if d.path != definition.path or d.order < definition.order}
    return waiting


def _files(entry: Definition, pieces: Sequence[Piece]) -> list[str]:
    """Files of the closure, each after the files it imports; by path in import cycles."""
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
