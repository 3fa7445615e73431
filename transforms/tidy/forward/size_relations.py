"""How the sizes that a kernel takes follow from each other: `pad_width = width + 2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..syntax.algebra import Polynomial, number


def relations(launches: Sequence[Mapping[str, Polynomial]]) -> dict[str, Polynomial]:
    """Sizes in terms of others that a kernel takes, where that holds in every launch.

    `launches` maps sizes to their values in the calling function; "ks0", and "size_pad_width" for a size that the
    kernel would have to compute.
    """
    found = [_relations(launch) for launch in launches]
    return {name: value for name, value in found[0].items() if all(other.get(name) == value for other in found)}


def _relations(values: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """Each size in terms of those that are a symbol of the calling function, or one and a number."""
    by_symbol: dict[str, tuple[str, Polynomial]] = {}  # symbol -> the size that stands for it, and the symbol by it
    for name, value in sorted(values.items(), key=lambda item: len(item[1].terms)):
        linear = [monomial for monomial in value.terms if monomial]
        if not name.startswith("size_") and len(linear) == 1 and value.terms[linear[0]] == 1 and len(linear[0]) == 1:
            less = Polynomial({(name,): 1}) + number(-value.terms.get((), 0))
            by_symbol.setdefault(linear[0][0], (name, less))
    found: dict[str, Polynomial] = {}
    for name, value in sorted(values.items(), key=lambda item: not item[0].startswith("size_")):
        atoms = {atom for monomial in value.terms for atom in monomial}
        if atoms and atoms <= by_symbol.keys() and all(by_symbol[atom][0] != name for atom in atoms):
            found[name] = value.replaced({atom: by_symbol[atom][1] for atom in atoms})
    return found
