"""Collect a class and all definitions of the tree that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelquarry.pipeline.schema.reasons import Reason

from .bindings import Definition
from .resolve import MAX_DEFINITIONS, Needs, Resolver
from .tree import Missing, Symbol
from .usage import Kind, Part, kept_usages

MAX_BYTES = 200_000  # limit for all definitions together: 100 times the median


@dataclass(slots=True)
class Closure:
    """A class and all definitions that it needs."""

    entry: Definition
    definitions: list[Definition] = field(default_factory=list)
    dropped: set[Part] = field(default_factory=set)
    missing: set[Missing] = field(default_factory=set)
    broken: Definition | None = None  # a definition with syntax errors

    @property
    def failure(self) -> tuple[Reason, str] | None:
        """Reason and evidence if the class cannot be written as one file, else None."""
        packages = sorted({item.package for item in self.missing if item.package})
        if packages:
            return Reason.FORBIDDEN_IMPORT, ", ".join(packages)
        if self.missing:
            return Reason.UNRESOLVED_NAME, ", ".join(sorted({item.name for item in self.missing}))
        if self.broken is not None:
            return Reason.SYNTAX_ERROR, f"{self.broken.path}:{self.broken.node.start_point.row + 1}"
        if len(self.definitions) > MAX_DEFINITIONS:
            return Reason.TOO_MANY_DEFINITIONS, f"more than {MAX_DEFINITIONS}"
        size = sum(definition.node.end_byte - definition.node.start_byte for definition in self.definitions)
        if size > MAX_BYTES:
            return Reason.TOO_MANY_DEFINITIONS, f"{size} bytes"
        return None


def collect_closure(resolver: Resolver, entry: Definition, passed: Sequence[Definition] = ()) -> Closure:
    """Collect the closure of a class; its `failure` says what is missing.

    Args:
        passed: classes that the file passes to the class's constructor. They are left out if one cannot be collected.
    """
    closure = _Collector(resolver, entry, passed).collect()
    return _Collector(resolver, entry).collect() if passed and closure.failure else closure


class _Collector:
    """Collects one closure, by following needs until nothing new is found."""

    def __init__(self, resolver: Resolver, entry: Definition, passed: Sequence[Definition] = ()) -> None:
        self._resolver = resolver
        self._closure = Closure(entry)
        self._seen = {entry, *passed}
        self._queue = [*passed, entry]
        # Names mentioned so far, and the dropped methods that a mention would restore: part -> (name, definition).
        self._attributes, self._words, self._looks_up = set[str](), set[str](), False
        self._waiting: dict[Part, tuple[str, Definition]] = {}

    def collect(self) -> Closure:
        closure = self._closure
        while self._queue:
            if len(closure.definitions) > MAX_DEFINITIONS:
                break
            definition = self._queue.pop()
            closure.definitions.append(definition)
            if definition.has_error:
                closure.broken = definition
            else:
                needs = self._resolver.needs(definition)
                self._take(needs)
                self._waiting |= {part: (name, definition) for name, part in needs.methods}
            while not self._queue and (self._revive_methods() or self._restore_registrations()):
                pass
        if self._builds_on_itself():
            closure.missing.add(Missing(closure.entry.names[0]))
        return closure

    def _builds_on_itself(self) -> bool:
        """True for `class X(X)`, whose base is an earlier class of the same name."""
        entry = self._closure.entry
        usages = kept_usages(entry.usage.usage, self._closure.dropped)
        return any(r.eager and r.name in entry.names for usage in usages for r in usage.references)

    def _take(self, needs: Needs) -> None:
        """Queue what a piece of a definition needs."""
        self._attributes |= needs.attributes
        self._words |= needs.look_ups.words
        self._looks_up |= needs.look_ups.any
        self._closure.missing.update(needs.missing)
        self._closure.dropped.update(needs.dropped)
        for symbol in needs.symbols:
            self._need(symbol)

    def _need(self, symbol: Symbol) -> None:
        """Queue the definitions of a symbol. The entry class is one definition even if its name has several."""
        entry = self._closure.entry
        is_entry = symbol.path == entry.path and symbol.name in entry.names
        for definition in [entry] if is_entry else self._resolver.needed(symbol):
            if definition not in self._seen:
                self._seen.add(definition)
                self._queue.append(definition)

    def _revive_methods(self) -> bool:
        """Restore dropped methods that the closure mentions. Returns True if there are any.

        A method whose needs can all be met is also restored if a string may be its name.
        """
        waited = len(self._waiting)
        for part, (name, definition) in list(self._waiting.items()):
            in_string = self._looks_up or name in self._words
            if name in self._attributes or (in_string and not self._resolver.drops(definition.path, part)):
                del self._waiting[part]
                self._closure.dropped.discard(part)
                self._take(self._resolver.part_needs(definition, part))
        return len(self._waiting) < waited

    def _restore_registrations(self) -> bool:
        """Restore decorators whose registry is in the closure, as it may be read. Returns True if there are any."""
        closure = self._closure
        if not any(part.kind is Kind.DECORATOR for part in closure.dropped):
            return False
        restored = False
        symbols = {Symbol(d.path, name) for d in closure.definitions for name in d.names}
        for definition in closure.definitions:
            for part in definition.usage.usage.parts:
                if part.kind is Kind.DECORATOR and part in closure.dropped:
                    targets = self._resolver.targets(definition.path, part.usage)
                    known = [t in symbols if isinstance(t, Symbol) else not isinstance(t, Missing) for t in targets]
                    if all(known) and any(isinstance(t, Symbol) for t in targets):
                        closure.dropped.discard(part)
                        self._take(self._resolver.part_needs(definition, part))
                        restored = True
        return restored
