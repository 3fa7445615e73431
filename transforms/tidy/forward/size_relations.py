"""Find how the sizes of a kernel follow from each other: `pad_width = width + 2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..kernel.addresses import COMPUTED
from ..syntax.algebra import Polynomial, number


def relations(launches: Sequence[Mapping[str, Polynomial]]) -> dict[str, Polynomial]:
    """Map sizes of a kernel to their values in terms of its other sizes, where every launch agrees.

    `launches` maps the names of sizes to their values in the calling function. Names that begin with `COMPUTED` are
    those of sizes that the kernel does not take.
    """
    found = [_relations(launch) for launch in launches]
    return {name: value for name, value in found[0].items() if all(other.get(name) == value for other in found)}


def _relations(values: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """The same for one launch. A size stands for a symbol if it is the symbol, or the symbol plus a number."""
    by_symbol: dict[str, tuple[str, Polynomial]] = {}  # symbol -> the size that stands for it, and its value by that
    for name, value in sorted(values.items(), key=lambda item: len(item[1].terms)):
        linear = [monomial for monomial in value.terms if monomial]
        if not name.startswith(COMPUTED) and len(linear) == 1 and value.terms[linear[0]] == 1 and len(linear[0]) == 1:
            less = Polynomial({(name,): 1}) + number(-value.terms.get((), 0))
            by_symbol.setdefault(linear[0][0], (name, less))
    found: dict[str, Polynomial] = {}
    for name, value in sorted(values.items(), key=lambda item: not item[0].startswith(COMPUTED)):
        atoms = {atom for monomial in value.terms for atom in monomial}
        if atoms and atoms <= by_symbol.keys() and all(by_symbol[atom][0] != name for atom in atoms):
            found[name] = value.replaced({atom: by_symbol[atom][1] for atom in atoms})
    return found
