"""The operator signature of a module, which ignores shapes, constants, names and the order of operands.

It counts all paths of up to three operators in the module's graph. Operators that only view or copy are left out, and
different names of one operator are unified. Parameters and buffers are part of a path, inputs are not: so the paths of
a module are also found where its input is another module's output.
"""

from __future__ import annotations

import json
from collections import Counter

from kernelquarry.filters.triviality import MOVEMENT, base_name
from kernelquarry.pipeline.schema.ids import canonical, sha256

LONGEST = 3  # operators in a path
Paths = Counter[str]
_Ends = tuple[tuple[str, ...], ...]

_STATE = "state"
_LAYOUT = MOVEMENT | {"broadcast_in_dim", "expand_copy", "view_copy", "select_copy", "slice_copy"}
_ONE_NAME = {
    "bmm": "mm", "mv": "mm", "dot": "mm", "relu": "clamp_min", "maximum": "clamp_min", "hardtanh": "clamp",
    "relu6": "clamp", "square": "pow", "neg": "scale", "true_divide": "div", "divide": "div", "multiply": "mul",
    "subtract": "sub", "amax": "max", "amin": "min", "concat": "cat", "concatenate": "cat",
}  # fmt: skip
_WITH_A_CONSTANT = {"add": "shift", "sub": "shift", "mul": "scale", "div": "scale"}
_ADDED_TO = frozenset({"addmm", "baddbmm", "addbmm", "addmv"})
_PARTS = frozenset({  # operators that view a part of their input
    "chunk", "diagonal", "narrow", "select", "select_copy", "slice", "slice_copy", "split",
    "split_with_sizes", "unbind",
})  # fmt: skip
_PRODUCTS = frozenset({"mm", "bmm"})
_OF_ITSELF = {"mul": "pow"} | dict.fromkeys(_PRODUCTS, "gram")  # names where both operands are the same
_SEVERAL = {"mean": ("sum", "scale"), "rsqrt": ("sqrt", "reciprocal")}


def paths_of(graph: str) -> Paths:
    """Count the operator paths of a probed module's `graph`."""
    paths: Paths = Counter()
    ends: list[_Ends] = []  # for each node, the paths that end in it
    views: list[int] = []  # for each node, the node that it views or copies entirely, or itself
    for place, node in enumerate(json.loads(graph)):
        views.append(place)
        if len(node) == 1:
            ends.append(((_STATE,),) if node[0] in ("parameter", "buffer") else ())
            continue
        operator, takes = base_name(node[0]).rstrip("_"), node[1]
        if operator in _LAYOUT - _PARTS and len(takes) == 1:
            views[place] = views[takes[0]]
        if operator in _ADDED_TO and len(takes) == 3:  # (summand, factor, factor)
            product = _count(paths, ("mm",), [ends[n] for n in takes[1:]])
            ends.append(_count(paths, ("add",), [ends[takes[0]], product]))
        else:
            shown = [views[n] for n in takes] if operator in _PRODUCTS else takes
            names = () if operator in _LAYOUT else _names(operator, shown)
            ends.append(_count(paths, names, [ends[n] for n in takes]))
    return paths


def _count(paths: Paths, names: tuple[str, ...], takes: list[_Ends]) -> _Ends:
    """Count and return the paths that end in an operator, which is written as the sequence `names`."""
    into = tuple(dict.fromkeys(path for ends in takes for path in ends))
    for name in names:
        into = (*dict.fromkeys((*path[1 - LONGEST :], name) for path in into), (name,))
        paths.update(">".join(path) for path in dict.fromkeys(into))
    return into


def size(paths: Paths) -> int:
    """Number of operators."""
    return sum(count for path, count in paths.items() if ">" not in path)


def signature_of(paths: Paths) -> str:
    """A digest of the paths; "" for no paths."""
    return sha256(canonical(sorted(paths.items())))[:16] if paths else ""


def _names(operator: str, takes: list[int]) -> tuple[str, ...]:
    if len(takes) == 2 and takes[0] == takes[1] and operator in _OF_ITSELF:
        return (_OF_ITSELF[operator],)
    if len(takes) == 1 and operator in _WITH_A_CONSTANT:
        return (_WITH_A_CONSTANT[operator],)
    return _SEVERAL.get(operator, (_ONE_NAME.get(operator, operator),))
