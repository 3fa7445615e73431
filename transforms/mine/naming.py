"""What each definition and import of a closure is called in the file that is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT

from .closure import Closure
from .index import Definition
from .resolve import Resolver
from .tree import Builtin, External, Symbol, Target
from .usage import Reference

# Names that the benchmark's format gives a meaning, besides the entry point itself.
_RESERVED = frozenset({CANDIDATE_ENTRY_POINT, "get_inputs", "get_init_inputs"})


class NameConflict(Exception):
    """A definition has to be renamed, and its text does not allow it."""


@dataclass(slots=True)
class Names:
    """Target -> its name in the written file. Externals are keyed by their dotted name."""

    symbols: dict[Symbol, str] = field(default_factory=dict)
    externals: dict[str, str] = field(default_factory=dict)

    def of(self, target: Target) -> str | None:
        """None for a target that the file does not have."""
        match target:
            case Symbol():
                return self.symbols.get(target)
            case External():
                return self.externals.get(target.dotted)
            case Builtin():
                return target.name
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Use:
    """A reference and what it means."""

    reference: Reference
    target: Target
    consumed: int  # attributes of the reference that the target stands for


def resolve_all(resolver: Resolver, path: str, references: Iterable[Reference]) -> list[Use]:
    resolved = [(reference, resolver.resolve(path, reference)) for reference in references]
    return [Use(reference, found.target, found.consumed) for reference, found in resolved]


def written_uses(resolver: Resolver, closure: Closure, definition: Definition) -> list[Use]:
    """The uses that stay in the text, annotations apart."""
    return [
        use for usage in closure.usages(definition) for use in resolve_all(resolver, definition.path, usage.references)
    ]


def choose(resolver: Resolver, closure: Closure, ordered: Iterable[Definition]) -> Names:
    """Names for all that the closure defines and imports: their own, unless two would be the same.

    Raises:
        NameConflict: the entry point's name is taken where the class is used.
    """
    ordered = list(ordered)
    written = {d: written_uses(resolver, closure, d) for d in ordered}
    builtins = {u.target.name for uses in written.values() for u in uses if isinstance(u.target, Builtin)}
    captured = _captured(written)
    local = set().union(*(d.usage.locals for d in ordered))
    taken = builtins | _RESERVED | {ENTRY_POINT}
    names = Names()

    def give(wanted: str, avoid: set[str]) -> str:
        name, number = wanted, 2
        while name in taken or name in avoid or (name != wanted and name in local):
            name, number = f"{wanted}_{number}", number + 1
        taken.add(name)
        return name

    entry = Symbol(closure.entry.path, closure.entry.names[0])
    if entry.name != ENTRY_POINT and ENTRY_POINT in captured.get(entry, ()):
        raise NameConflict(f"{ENTRY_POINT} is a local name where {entry.name} is used")
    names.symbols[entry] = ENTRY_POINT
    for definition in ordered:
        for external in _externals(resolver, closure, definition, written[definition]):
            if external.dotted not in names.externals:
                names.externals[external.dotted] = give(external.local, captured.get(external.dotted, set()))
    for definition in ordered:
        for name in definition.names:
            symbol = Symbol(definition.path, name)
            if symbol not in names.symbols:
                names.symbols[symbol] = give(name, captured.get(symbol, set()))
    return names


def _externals(resolver: Resolver, closure: Closure, definition: Definition, written: list[Use]) -> Iterator[External]:
    """What the text needs from outside, and what its annotations may have from there as well."""
    annotated = (
        resolve_all(resolver, definition.path, annotation.references)
        for usage in closure.usages(definition)
        for annotation in usage.annotations
    )
    light = [uses for uses in annotated if all(isinstance(use.target, External | Builtin) for use in uses)]
    for use in (*written, *(use for uses in light for use in uses)):
        if isinstance(use.target, External):
            yield use.target


def _captured(written: dict[Definition, list[Use]]) -> dict[Symbol | str, set[str]]:
    """Names that would mean something local where a target is used under another name than its own."""
    found: dict[Symbol | str, set[str]] = {}
    for definition, uses in written.items():
        local = definition.usage.locals
        for use in uses:
            if isinstance(use.target, Symbol | External):
                key = use.target if isinstance(use.target, Symbol) else use.target.dotted
                written_as = set() if use.consumed else {use.reference.name}
                found.setdefault(key, set()).update(local - written_as)
    return found
