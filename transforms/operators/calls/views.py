"""Casts, and indices that are tensors. Views stay as the module writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .elements import cast
from .table import NotWritten, on

if TYPE_CHECKING:
    from ..write_call import Writer

VIEWS = frozenset(
    """
    T atleast_1d atleast_2d broadcast_tensors broadcast_to chunk clone contiguous detach diagonal empty empty_like
    expand expand_as flatten full full_like mT moveaxis movedim narrow new_empty new_full new_ones new_zeros ones
    ones_like permute ravel reshape reshape_as select split split_with_sizes squeeze swapaxes t transpose unbind
    unflatten unsqueeze view view_as zeros zeros_like
    """.split()
)


def is_view(node: Node) -> bool:
    """True for a call that the language has itself: a view or an allocation."""
    if node.operator == "getitem":
        index: Any = node.args[1]
        items = index["tuple"] if isinstance(index, dict) and "tuple" in index else [index]
        of_tensors = [item for item in items if item.keys() & {"node", "list", "unknown"}]
        return not of_tensors and not any(isinstance(item.get("value"), bool) for item in items)
    return node.operator in VIEWS


@on("clone")
def _clone(w: Writer, node: Node) -> str:
    return w.call("copied", w.tensor(w.given(node)["x"], ""))


@on("to", "type", "float", "long", "bool", "type_as", "int", "double", "half")
def _cast(w: Writer, node: Node) -> str:
    given = w.given(node)
    given.unread.clear()  # the node has the dtype
    return cast(w, given["x"], node.dtype)


@on("index:getitem")
def _getitem(w: Writer, node: Node) -> str:
    given = w.given(node)
    found = given["other"]
    items = found.get("list", [found])
    tensors = [i for i, item in enumerate(items) if w.is_tensor(item)]
    plain = all(item == {"slice": [{"value": None}] * 3} for item in items[: tensors[0]]) if tensors else False
    if len(tensors) != 1 or not plain or items[-1] is not items[tensors[0]] or w.rank(items[tensors[0]]) == 0:
        raise NotWritten("an index of tensors")
    (dim,) = tensors
    index = w.tensor(items[dim], "int64")
    x = w.tensor(given["x"], "")
    if w.rank(items[dim]) == 1:
        return w.call("index_select", f"{x}, {dim}, {index}")
    return w.call("index_select", f"{x}, {dim}, {index}.flatten()") + f".unflatten({dim}, {index}.shape)"
