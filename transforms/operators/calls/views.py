"""Views, casts and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .elements import cast
from .table import TABLE, Handler, NotWritten, on, parameters_of, plain, repeated

if TYPE_CHECKING:
    from ..write_forward import Writer


def _view(text: Callable[[Writer, Node, dict[str, Any]], str]) -> Handler:
    def handler(w: Writer, node: Node) -> str:
        given = w.given(node)
        return f"{w.atom(given['x'])}.{text(w, node, given)}"

    return handler


def _sizes_of(w: Writer, given: dict[str, Any], free: bool = True) -> str:
    found = given["sizes"] if "sizes" in given else given["shape"] if "shape" in given else given["size"]
    if isinstance(found, dict) and "code" in found:
        raise NotWritten("a view of another dtype")
    trees = found.get("tuple") or found.get("list") or [found]
    return ", ".join(w.shape(trees, given["x"]["node"], free))


TABLE["view"] = TABLE["reshape"] = _view(lambda w, node, given: f"reshape({_sizes_of(w, given)})")
TABLE["expand"] = _view(lambda w, node, given: f"expand({_sizes_of(w, given, False)})")


@on("permute", "transpose", "swapaxes", "movedim", "moveaxis", "unsqueeze", "squeeze", "flatten", "narrow", "select",
     "unbind", "chunk", "split", "unflatten", "t", "layer:Flatten", "diagonal", "layer:Unflatten")  # fmt: skip
def _moved(w: Writer, node: Node) -> str:
    given = w.given(node)
    x = w.atom(given["x"])
    if node.name == "Flatten":
        return f"{x}.flatten({node.arguments.get('start_dim', 1)}, {node.arguments.get('end_dim', -1)})"
    if node.name == "Unflatten":
        return f"{x}.unflatten({node.arguments['dim']}, {repeated(plain(node.arguments['unflattened_size']), 1)})"
    if node.operator == "permute":
        dims = given["sizes"]
        return f"{x}.permute({', '.join(map(str, w.constant(dims)))})"
    rest = {key: given[key] for key in given if key != "x"}
    place = given["x"]["node"]
    texts: list[str] = []
    for key, value in rest.items():
        if isinstance(value, dict) and "sizes" in value:
            text = w.size(tuple(value["sizes"]), place)
        elif isinstance(value, dict) and ("tuple" in value or "list" in value):
            items = w.shape(value.get("tuple") or value.get("list") or [], place, node.operator == "unflatten")
            text = f"({', '.join(items)}{',' * (len(items) == 1)})"
        else:
            text = repr(w.constant(value))
        texts.append(text if key in parameters_of(node)[1 : len(texts) + 2] else f"{key}={text}")
    return f"{x}.{node.operator}({', '.join(texts)})"


@on("attribute:T", "attribute:mT")
def _turned(w: Writer, node: Node) -> str:
    return f"{w.atom(w.given(node)['x'])}.{node.operator}"


@on("view_as", "reshape_as", "expand_as")
def _as(w: Writer, node: Node) -> str:
    one, other = w.given(node)["x"], w.given(node)["other"]
    return f"{w.atom(one)}.{node.operator.removesuffix('_as').replace('view', 'reshape')}({w.atom(other)}.shape)"


@on("contiguous", "clone", "detach")
def _same(w: Writer, node: Node) -> str:
    return w.atom(w.given(node)["x"])


@on("to", "type", "float", "long", "bool", "type_as", "int", "double", "half")
def _cast(w: Writer, node: Node) -> str:
    return cast(w, w.given(node)["x"], node.dtype)


@on("index:getitem")
def _getitem(w: Writer, node: Node) -> str:
    x: Any = node.args[0]
    index: Any = node.args[1]
    items = index["tuple"] if isinstance(index, dict) and "tuple" in index else [index]
    tensors = [i for i, item in enumerate(items) if w.is_tensor(item)]
    place = x["node"]
    if tensors:
        plain = all(item == {"slice": [{"value": None}] * 3} for item in items[: tensors[0]])
        last = items[tensors[0]]
        if len(tensors) != 1 or not plain or items[-1] is not last or w.node(last).dtype != "int64":
            raise NotWritten("an index of tensors")
        index, dim = w.tensor(items[tensors[0]], "int64"), tensors[0]
        if w.rank(items[dim]) == 1:
            return w.call("index_select", f"{w.tensor(x, '')}, {dim}, {index}")
        if w.rank(items[dim]) == 0:
            raise NotWritten("an index that is a number")
        return (
            w.call("index_select", f"{w.tensor(x, '')}, {dim}, {index}.flatten()") + f".unflatten({dim}, {index}.shape)"
        )

    def part(tree: Any) -> str:
        match tree:
            case {"slice": [start, stop, step]}:
                texts = ["" if each == {"value": None} else part(each) for each in (start, stop, step)]
                return ":".join(texts[: 3 if texts[2] else 2])
            case {"sizes": list(sizes)}:
                return w.size(tuple(sizes), place)
            case {"code": "..."}:
                return "..."
        return repr(w.constant(tree))

    if any("list" in item or isinstance(item.get("value"), bool) for item in items if isinstance(item, dict)):
        raise NotWritten("an index of a list")
    return f"{w.atom(x)}[{', '.join(map(part, items))}]"
