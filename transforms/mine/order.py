"""The order in which a closure's definitions are written, so that each comes after what it needs when it runs."""

from __future__ import annotations

import heapq
from collections import defaultdict

from .closure import Closure
from .index import Definition
from .naming import written_uses
from .resolve import Resolver
from .tree import Symbol


def in_order(resolver: Resolver, closure: Closure) -> list[Definition]:
    """Files in the order of their imports, the entry's last; in a file, its own order, unless it would not run."""
    ranks = {path: rank for rank, path in enumerate(_files(resolver, closure))}
    place = {d: (ranks[d.path], d.order) for d in closure.definitions}
    by_place = {position: d for d, position in place.items()}
    waiting = _needed_first(resolver, closure)
    dependents: dict[Definition, list[Definition]] = defaultdict(list)
    for definition, needed in waiting.items():
        for other in needed:
            dependents[other].append(definition)
    ready = [place[d] for d, needed in waiting.items() if not needed]
    heapq.heapify(ready)
    ordered: list[Definition] = []
    while ready:
        definition = by_place[heapq.heappop(ready)]
        ordered.append(definition)
        for dependent in dependents[definition]:
            waiting[dependent].discard(definition)
            if not waiting[dependent]:
                heapq.heappush(ready, place[dependent])
    in_cycles = set(closure.definitions) - set(ordered)
    return ordered + sorted(in_cycles, key=place.__getitem__)


def _needed_first(resolver: Resolver, closure: Closure) -> dict[Definition, set[Definition]]:
    """What each definition looks up while it is executed."""
    by_symbol: dict[Symbol, list[Definition]] = defaultdict(list)
    for definition in closure.definitions:
        for name in definition.names:
            by_symbol[Symbol(definition.path, name)].append(definition)
    waiting: dict[Definition, set[Definition]] = {}
    for definition in closure.definitions:
        eager = {use.target for use in written_uses(resolver, closure, definition) if use.reference.eager}
        needed = {d for target in eager if isinstance(target, Symbol) for d in by_symbol[target]}
        # Of several statements about one name, only those above this one were there when it ran.
        waiting[definition] = {d for d in needed if d.path != definition.path or d.order < definition.order}
    return waiting


def _files(resolver: Resolver, closure: Closure) -> list[str]:
    """Files of the closure, imported before importing; by path where they import each other."""
    needs: dict[str, set[str]] = defaultdict(set)
    for definition in closure.definitions:
        for usage in closure.usages(definition):
            targets = resolver.targets(definition.path, usage)
            needs[definition.path] |= {t.path for t in targets if isinstance(t, Symbol)}
    found: list[str] = []
    seen: set[str] = set()

    def visit(path: str) -> None:
        if path not in seen:
            seen.add(path)
            for other in sorted(needs[path]):
                visit(other)
            found.append(path)

    for path in (closure.entry.path, *sorted(needs)):
        visit(path)
    return found
