"""The graph of the operators of one forward. A layer, such as a batch norm, is one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from ..lib.dispatch_mode import DispatchMode

_MAX_NODES = 1_000  # in larger graphs, comparing the sources is enough

Node = list[Any]  # [kind] of a leaf, or [operator, [indices of its input nodes]]


class Recorder(DispatchMode):
    """Records the operators in this context. `leaves` maps "input", "parameter" and "buffer" to their tensors."""

    def __init__(self, **leaves: Sequence[Tensor]) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self._number: dict[int, int] = {}  # id of a tensor -> its node
        self._written: dict[int, int] = {}  # address of a storage -> the last node that wrote to it
        self._alive: list[Tensor] = []  # holds the tensors, so that their ids stay unique
        for kind, tensors in leaves.items():
            for tensor in tensors:
                self._place(tensor, [kind])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs = [n for t in _tensors((*args, *kwargs.values())) if (n := self.number(t)) is not None]
        node = [func._schema.name.replace("::", "."), inputs]
        for tensor in _tensors((result,)):
            self._place(tensor, node)
            if func._schema.is_mutable:
                self._written[tensor.untyped_storage().data_ptr()] = len(self.nodes) - 1
        return result

    def number(self, tensor: Tensor) -> int | None:
        """Index of the node that made the tensor or last wrote to its storage; None for a constant."""
        own = self._number.get(id(tensor))
        written = self._written.get(tensor.untyped_storage().data_ptr())
        return max((n for n in (own, written) if n is not None), default=None)

    def _place(self, tensor: Tensor, node: Node) -> None:
        if not self.nodes or self.nodes[-1] is not node:  # the results of one call are one node
            self.nodes.append(node)
        self._number[id(tensor)] = len(self.nodes) - 1
        self._alive.append(tensor)


def graph(recorder: Recorder, outputs: Sequence[Tensor]) -> list[Node]:
    """The nodes that the outputs depend on, in the order in which they ran; empty if they are too many."""
    needed: set[int] = set()
    stack = [n for tensor in outputs if (n := recorder.number(tensor)) is not None]
    while stack:
        number = stack.pop()
        if number not in needed:
            needed.add(number)
            stack += recorder.nodes[number][1] if len(recorder.nodes[number]) > 1 else []
    if len(needed) > _MAX_NODES:
        return []
    place = {number: i for i, number in enumerate(sorted(needed))}
    return [_moved(recorder.nodes[number], place) for number in place]


def _moved(node: Node, place: Mapping[int, int]) -> Node:
    return [node[0], [place[n] for n in node[1]]] if len(node) > 1 else node


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += _tensors(value)
    return found
