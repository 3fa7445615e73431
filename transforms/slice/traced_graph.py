"""The graph of a module's forward, as the guest recorded it: validation, and which nodes are operators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import JsonValue, TypeAdapter

LEAVES = frozenset({"input", "parameter", "buffer", "value"})
# Nodes that make, view or name tensors: part of a piece, and no operator of it.
_MOVES = frozenset(
    """
    arange chunk clone contiguous detach double empty empty_like expand expand_as eye flatten float full full_like
    getitem index item linspace long meshgrid mT movedim narrow ones ones_like permute ravel reshape reshape_as select
    size split squeeze swapaxes t T tensor tensor_split to transpose type type_as unbind unflatten unfold unsqueeze view
    view_as zeros zeros_like Flatten Unflatten
    """.split()
)
_SAME = frozenset("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Identity Sequential dropout".split())
_CASTS = frozenset("to float type type_as detach clone".split())
_MAKERS = frozenset("arange empty eye full linspace ones tensor zeros".split())
# As `torch` calls them, with flat weights.
_STATEFUL = frozenset("lstm gru rnn_tanh rnn_relu lstm_cell gru_cell".split())
_RANDOM = frozenset(
    "rand randn rand_like randn_like randint randperm multinomial bernoulli normal uniform empty".split()
)
# Operators that combine many elements into each result. Others, such as a batch norm in eval mode, fuse into one loop.
_COMBINES = re.compile(
    r"\w*(conv|linear|matmul|bmm|einsum|attention|layer_?norm|rms_?norm|group_?norm|instance_?norm|normalize|softmax|pool"
    r"|cumsum|logsumexp|loss|similarity)\w*|@|mm|sum|mean|a?max|a?min|var|std|norm|prod|all|any|arg(max|min|sort)|sort|topk",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Node:
    """One call of PyTorch, or a leaf. `{"node": i}` in its arguments is an earlier node."""

    kind: str  # "layer", "function", "method", "infix", "prefix", "index", "attribute", "item", "unknown", or a leaf
    name: str
    args: list[JsonValue]
    kwargs: dict[str, JsonValue]
    shapes: tuple[tuple[int, ...], ...] = ()  # one for each call; empty: no tensor
    dtype: str = ""
    low: int = 0
    high: int = 0
    mean: float = 0.0
    std: float = 0.0
    arguments: dict[str, JsonValue] = field(default_factory=dict)  # of a layer's constructor
    path: str = ""  # of a layer in the module
    held: tuple[str, ...] = ()  # variables and attributes that hold its only tensor, or any if it takes none
    span: tuple[int, ...] = ()  # of the expression of the module's file: line, column, last line, last column

    @cached_property
    def operator(self) -> str:
        """Name without the namespace."""
        return self.name.rpartition(".")[2]

    @cached_property
    def takes(self) -> tuple[int, ...]:
        """The nodes in its arguments, in order, with repetitions."""
        return tuple(_nodes([self.args, self.kwargs]))

    @cached_property
    def is_leaf(self) -> bool:
        return self.kind in LEAVES

    @cached_property
    def is_operator(self) -> bool:
        """True for a node that computes."""
        return not self.is_leaf and self.kind not in ("item", "attribute", "index") and self.operator not in _MOVES

    @cached_property
    def combines(self) -> bool:
        """True for an operator that is mostly a kernel of its own: a contraction, a reduction or a pool."""
        return self.is_operator and _COMBINES.fullmatch(self.operator) is not None

    @property
    def makes(self) -> bool:
        """True for a node that makes a tensor from sizes alone."""
        return not self.is_leaf and not self.takes and self.operator in _MAKERS

    @cached_property
    def is_unfit(self) -> bool:
        """True if a piece may not hold it."""
        return self.kind == "unknown" or self.operator in _RANDOM | _STATEFUL or _is_unknown([self.args, self.kwargs])


def _nodes(tree: Any) -> Iterator[int]:
    if isinstance(tree, dict):
        if tree.keys() == {"node"}:
            yield tree["node"]
        else:
            for value in tree.values():
                yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _is_unknown(tree: Any) -> bool:
    if isinstance(tree, dict):
        return "unknown" in tree or any(map(_is_unknown, tree.values()))
    return isinstance(tree, list) and any(map(_is_unknown, tree))


_NODES: TypeAdapter[list[Node]] = TypeAdapter(list[Node])
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|[-+*/@%&|~<>=!]{1,2}|\d+|")


def parse_graph(nodes: Any) -> list[Node]:
    """Check a guest's reply. Raises: ValueError, also `pydantic.ValidationError`: it is malformed."""
    graph = _NODES.validate_python(nodes)
    for place, node in enumerate(graph):
        if not all(type(taken) is int and 0 <= taken < place for taken in node.takes):
            raise ValueError(f"node {place} takes a later one")
        if not node.is_leaf and not _NAME.fullmatch(node.name):
            raise ValueError(f"a node called {node.name[:40]!r}")
        if not all(name.isidentifier() for name in (*node.kwargs, *node.arguments)):
            raise ValueError(f"an argument called {[*node.kwargs, *node.arguments]}"[:80])
    return without_identities(graph)


def without_identities(graph: list[Node]) -> list[Node]:
    """The graph in which nothing takes a node that only passes its input on; the nodes keep their places."""
    same: dict[int, int] = {}
    found: list[Node] = []
    for place, node in enumerate(graph):
        node = _redirected(node, same) if any(taken in same for taken in node.takes) else node
        if _passes_input(node) and (node.shapes, node.dtype) == (
            found[node.takes[0]].shapes,
            found[node.takes[0]].dtype,
        ):
            same[place] = node.takes[0]
            node = replace(node, kind="unknown")  # no part of a piece
        found.append(node)
    return found


def _passes_input(node: Node) -> bool:
    """True for a node that may give what it takes: dropout in eval mode, a cast to the same dtype, `x + 0`."""
    if node.is_leaf or not node.takes:
        return False
    if node.operator in _SAME or (node.operator in _CASTS and node.kind == "method"):
        return True
    if node.operator in ("cat", "concat") and len(node.takes) == 1:
        return True
    neutral = {"+": 0, "-": 0, "*": 1, "/": 1}.get(node.name)
    return neutral is not None and {"value": neutral} in node.args[1:]


def _redirected(node: Node, same: dict[int, int]) -> Node:
    def change(tree: Any) -> Any:
        if isinstance(tree, dict):
            if tree.keys() == {"node"}:
                return {"node": same.get(tree["node"], tree["node"])}
            return {key: change(value) for key, value in tree.items()}
        return [change(value) for value in tree] if isinstance(tree, list) else tree

    return replace(node, args=change(node.args), kwargs=change(node.kwargs))
