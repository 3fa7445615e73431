"""The operator signature of a module, which ignores shapes, constants, names and the order of operands.

It counts all paths of up to three operators in the module's graph. Operators that only view or copy are left out, and
different names of one operator are unified. Parameters and buffers are part of a path; of inputs, the number counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kernelquarry.filters.triviality import MOVEMENT, base_name
from kernelquarry.pipeline.schema.ids import canonical, sha256

LONGEST = 3  # operators in a path
Paths = Counter[str]
_Ends = tuple[tuple[str, ...], ...]
_Node = list[Any]  # [kind] of a leaf, or [operator, [indices of its input nodes]]

_INPUT, _STATE = "input", "state"
_INPUTS = "further inputs"  # counted like a path
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
_ELEMENTWISE = frozenset({"add", "sub", "mul", "div"})
_OF_ITSELF = {"mul": "pow"} | dict.fromkeys(_PRODUCTS, "gram")  # names where both operands are the same
_SEVERAL = {"mean": ("sum", "scale"), "rsqrt": ("sqrt", "reciprocal")}


def paths_of(graph: str) -> Paths:
    """Count the operator paths of a probed module's `graph`, and its inputs."""
    return _paths(json.loads(graph))


def _paths(nodes: Sequence[_Node]) -> Paths:
    used = {place for node in nodes if len(node) > 1 for place in node[1]}
    inputs = sum(len(node) == 1 and node[0] == _INPUT and place in used for place, node in enumerate(nodes))
    paths: Paths = Counter({_INPUTS: inputs - 1} if inputs > 1 else {})
    ends: list[_Ends] = []  # for each node, the paths that end in it
    views: list[int] = []  # for each node, the node that it views or copies entirely, or itself
    for place, node in enumerate(nodes):
        views.append(place)
        if len(node) == 1:
            ends.append(((_STATE,),) if node[0] in ("parameter", "buffer") else ())
            continue
        operator, takes = _operator(node), node[1]
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


def _operator(node: _Node) -> str:
    return base_name(node[0]).rstrip("_")


def _is_operator(node: _Node) -> bool:
    """True for a node that computes: no leaf, and no view or copy."""
    return len(node) > 1 and _operator(node) not in _LAYOUT


def _count(paths: Paths, names: tuple[str, ...], takes: list[_Ends]) -> _Ends:
    """Count and return the paths that end in an operator, which is written as the sequence `names`."""
    into = tuple(dict.fromkeys(path for ends in takes for path in ends))
    for name in names:
        into = (*dict.fromkeys((*path[1 - LONGEST :], name) for path in into), (name,))
        paths.update(">".join(path) for path in dict.fromkeys(into))
    return into


def size(graph: str) -> int:
    """Number of operators. A layer that PyTorch runs as a whole is one, and so is a product with its bias."""
    nodes: list[_Node] = json.loads(graph)
    return sum(_is_operator(node) and not _adds_bias(nodes, node) for node in nodes)


def depth(graph: str) -> int:
    """Number of operators on the longest path, counted as `size` counts them."""
    nodes: list[_Node] = json.loads(graph)
    depths: list[int] = []
    for node in nodes:
        below = max((depths[taken] for taken in node[1]), default=0) if len(node) > 1 else 0
        depths.append(below + (_is_operator(node) and not _adds_bias(nodes, node)))
    return max(depths, default=0)


def _adds_bias(nodes: Sequence[_Node], node: _Node) -> bool:
    """True for the sum of a matrix product and a parameter."""
    if _operator(node) != "add" or len(node[1]) != 2:
        return False
    operands = [_viewed(nodes, place) for place in node[1]]
    products = [len(one) > 1 and _operator(one) in _PRODUCTS | {"mv"} for one in operands]
    return any(products) and any(_is_state(nodes, place) for place in node[1])


def _is_state(nodes: Sequence[_Node], place: int) -> bool:
    """True for a parameter or buffer, or a view of one."""
    return _viewed(nodes, place)[0] in ("parameter", "buffer")


def _viewed(nodes: Sequence[_Node], place: int) -> _Node:
    """The node that a node views, directly or not."""
    while len(nodes[place]) > 1 and _operator(nodes[place]) in _LAYOUT and len(nodes[place][1]) == 1:
        place = nodes[place][1][0]
    return nodes[place]


def signatures_without_one(graph: str, most: int = 64) -> tuple[str, ...]:
    """Signatures of the graph with one operator left out, for each operator. Empty for more than `most` operators.

    An operand takes the operator's place. A layer with weights, such as a batch norm, is no single operator, but a
    scale or a shift by a parameter is one. So is the addition of a value that has another use, such as a residual.
    """
    nodes: list[_Node] = json.loads(graph)
    places = [place for place, node in enumerate(nodes) if _is_operator(node)]
    uses = Counter(taken for node in nodes if len(node) > 1 for taken in set(node[1]))
    found: set[str] = set()
    for place in places if len(places) <= most else ():
        operator = _operator(nodes[place])
        if operator not in _ELEMENTWISE and any(_is_state(nodes, n) for n in nodes[place][1]):
            continue
        values = {n for n in nodes[place][1] if len(nodes[n]) > 1 or nodes[n][0] == _INPUT}
        only_here = {n for n in values if uses[n] == 1}
        for taken in values if len(values) == 1 or operator == "add" else ():
            if only_here <= {taken}:
                found.add(signature_of(_paths([*nodes[:place], ["aten.view", [taken]], *nodes[place + 1 :]])))
    return tuple(sorted(found - {""}))


def signature_of(paths: Paths) -> str:
    """A digest of the paths; "" for no paths."""
    return sha256(canonical(sorted(paths.items())))[:16] if paths else ""


def _names(operator: str, takes: list[int]) -> tuple[str, ...]:
    if len(takes) == 2 and takes[0] == takes[1] and operator in _OF_ITSELF:
        return (_OF_ITSELF[operator],)
    if len(takes) == 1 and operator in _WITH_A_CONSTANT:
        return (_WITH_A_CONSTANT[operator],)
    return _SEVERAL.get(operator, (_ONE_NAME.get(operator, operator),))
