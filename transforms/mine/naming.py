"""Choose the name of each definition and import in the file that a closure becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT

from .bindings import Definition
from .piece import Piece
from .tree import Builtin, External, Symbol, Target

# Names with a meaning in KernelBench's format, besides the entry point.
_RESERVED = frozenset({CANDIDATE_ENTRY_POINT, "get_inputs", "get_init_inputs"})
_NEVER = frozenset[str]()


class NameConflict(Exception):
    """A definition must be renamed, but its text does not allow it."""


@dataclass(slots=True)
class Names:
    """Names in the written file, by target. Externals are keyed by their dotted name."""

    symbols: dict[Symbol, str] = field(default_factory=dict)
    externals: dict[str, str] = field(default_factory=dict)

    def of(self, target: Target) -> str | None:
        """Name of a target, None if the file does not contain it."""
        match target:
            case Symbol():
                return self.symbols.get(target)
            case External():
                return self.externals.get(target.dotted)
            case Builtin():
                return target.name
            case _:
                return None


def choose_names(entry: Definition, ordered: Sequence[Piece]) -> Names:
    """Choose names for all definitions and imports of a closure: the author's own, numbered where they clash.

    Raises:
        NameConflict: the entry point's name is taken where the class is used.
    """
    taken = {ENTRY_POINT, *_RESERVED}.union(*(piece.builtins for piece in ordered))
    names = Names()

    local = set[str]().union(*(piece.locals for piece in ordered))

    def give(wanted: str, key: Symbol | str) -> str:
        name, number = wanted, 2
        while name in taken or (name in local and (name != wanted or _captured(ordered, key, name))):
            name, number = f"{wanted}_{number}", number + 1
        taken.add(name)
        return name

    symbol = Symbol(entry.path, entry.names[0])
    if symbol.name != ENTRY_POINT and _captured(ordered, symbol, ENTRY_POINT):
        raise NameConflict(f"{ENTRY_POINT} is a local name where {symbol.name} is used")
    names.symbols[symbol] = ENTRY_POINT
    for piece in ordered:
        for external in piece.externals:
            if external.dotted not in names.externals:
                names.externals[external.dotted] = give(external.local, external.dotted)
    for piece in ordered:
        for name in piece.definition.names:
            symbol = Symbol(piece.definition.path, name)
            if symbol not in names.symbols:
                names.symbols[symbol] = give(name, symbol)
    return names


def _captured(pieces: Sequence[Piece], key: Symbol | str, name: str) -> bool:
    """True if a piece that uses the target under another name has a local variable of this name."""
    return any(name in piece.locals and not piece.spellings.get(key, _NEVER) <= {name} for piece in pieces)
