"""Calls that join, turn, make or read elements by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .elements import cast
from .table import NotWritten, on, repeated

if TYPE_CHECKING:
    from ..write_call import Writer


@on("cat", "concat", "concatenate", "stack")
def _cat(w: Writer, node: Node) -> str:
    given = w.given(node)
    trees, whole = given["x"].get("list") or [], given["x"].get("text")
    dim = w.constant(given.get("dim"), 0)
    if len({w.rank(tree) for tree in trees}) != 1:
        raise NotWritten("cat of several ranks")
    whole = whole if len({w.node(tree).dtype for tree in trees}) == 1 else None
    texts = [cast(w, tree, node.dtype) for tree in trees]
    if node.operator == "stack":
        whole = whole and f"[each.unsqueeze({dim}) for each in {whole}]"
        texts = [f"{text}.unsqueeze({dim})" for text in texts]
    return w.call("concatenate", f"{whole or '[' + ', '.join(texts) + ']'}, {dim}")


@on("flip")
def _flip(w: Writer, node: Node) -> str:
    given = w.given(node)
    dims = w.constant(given["sizes"])
    x = w.tensor(given["x"], "")
    for dim in (dims,) if isinstance(dims, int) else dims:
        x = w.call("flip_axis", f"{x}, {dim}")
    return x


@on("roll")
def _roll(w: Writer, node: Node) -> str:
    given = w.given(node)
    x = w.tensor(given["x"])
    shifts, dims = (repeated(w.constant(given[name]), 1) for name in ("shifts", "dims"))
    if len(shifts) != 1:
        raise NotWritten("roll of several axes")
    dim, sizes = dims[0] % w.rank(given["x"]), {shape[dims[0]] for shape in w.node(given["x"]).shapes}
    shift = shifts[0]
    if abs(shift) >= min(sizes) or not shift:
        raise NotWritten("roll by the whole axis")
    at = ":, " * dim
    return w.call("concatenate", f"[{x}[{at}-({shift}):], {x}[{at}:-({shift})]], {dim}")


@on("index_select")
def _index_select(w: Writer, node: Node) -> str:
    given = w.given(node)
    return w.call(
        "index_select", f"{w.tensor(given['x'], '')}, {w.constant(given['dim'])}, {w.tensor(given['index'], 'int64')}"
    )


@on("gather")
def _gather(w: Writer, node: Node) -> str:
    given = w.given(node)
    dim = _whole_axis(w, given)
    return w.call("gather_axis", f"{w.tensor(given['x'], '')}, {dim}, {w.tensor(given['index'], 'int64')}")


@on("scatter")
def _scatter(w: Writer, node: Node) -> str:
    given = w.given(node)
    source = given.get("source", given.get("value"))
    x, index = w.tensor(given["x"], ""), w.tensor(given["index"], "int64")
    dim = _whole_axis(w, given)
    if w.is_tensor(source):
        if w.node(source).shapes != w.node(given["index"]).shapes or w.node(source).dtype != node.dtype:
            raise NotWritten("scatter of a part")
        values = w.tensor(source, "")
    else:
        values = w.number(w.constant(source))
    return w.call("scatter_axis", f"{x}, {dim}, {index}, {values}")


def _whole_axis(w: Writer, given: dict[str, Any]) -> Any:
    """The axis of an index, whose other axes have the tensor's sizes. Raises: NotWritten: they are shorter."""
    dim, shapes = w.constant(given["dim"]), (w.node(given["x"]).shapes, w.node(given["index"]).shapes)
    if any(_other_sizes(one, dim) != _other_sizes(other, dim) for one, other in zip(*shapes, strict=False)):
        raise NotWritten(f"an index of a part of axes other than {dim}")
    return dim


def _other_sizes(shape: tuple[int, ...], dim: int) -> list[int]:
    """The sizes of the other axes."""
    return [size for axis, size in enumerate(shape) if axis != dim % len(shape)]


@on("one_hot")
def _one_hot(w: Writer, node: Node) -> str:
    given = w.given(node)
    classes = w.constant(given.get("num_classes"), -1)
    if classes < 0:
        raise NotWritten("as many classes as there are values")
    return w.call("one_hot", f"{w.tensor(given['x'], 'int64')}, {classes}")


def _check_axes(w: Writer, tree: Any) -> None:
    if w.rank(tree) == 0:
        raise NotWritten("a tensor without axes")


@on("topk")
def _topk(w: Writer, node: Node) -> str:
    given = w.given(node)
    w.constant(given.get("sorted"))
    _check_axes(w, given["x"])
    dim, largest = w.constant(given.get("dim"), -1), w.constant(given.get("largest"), True)
    return w.call("sorted_axis", f"{w.tensor(given['x'])}, {dim}, {largest}, {w.constant(given['k'])}")


@on("sort", "argsort")
def _sort(w: Writer, node: Node) -> str:
    given = w.given(node)
    w.constant(given.get("stable"))
    _check_axes(w, given["x"])
    descending = ", True" if w.constant(given.get("descending"), False) else ""
    text = w.call("sorted_axis", f"{w.tensor(given['x'], '')}, {w.constant(given.get('dim'), -1)}{descending}")
    return text if node.operator == "sort" else f"{text}[1]"


@on("meshgrid")
def _meshgrid(w: Writer, node: Node) -> str:
    given = w.given(node)
    trees, whole = given["x"].get("list") or [], given["x"].get("text")
    if not trees or any(w.rank(tree) != 1 for tree in trees):
        raise NotWritten("a mesh of numbers")
    texts = ", ".join(w.tensor(tree, "") for tree in trees)
    return w.call("mesh_grids", f"{whole or f'[{texts}]'}, {w.constant(given.get('indexing'), 'ij')!r}")


@on("embedding")
def _embedding(w: Writer, node: Node) -> str:
    given = w.given(node)
    return w.call("embedding", f"{w.tensor(given['x'], 'int64')}, {w.tensor(given['weight'])}")


@on("tril", "triu")
def _triangle(w: Writer, node: Node) -> str:
    given = w.given(node)
    diagonal = w.constant(given.get("diagonal"), 0)
    return w.call("triangle", f"{w.tensor(given['x'], '')}, {diagonal}, {node.operator == 'tril'}")


@on("repeat", "tile")
def _repeat(w: Writer, node: Node) -> str:
    given = w.given(node)
    found = given["sizes"]
    trees = found.get("list") or [found]
    x, shapes = w.tensor(given["x"], ""), w.node(given["x"]).shapes
    rank = len(shapes[0])
    if len(trees) < rank:
        raise NotWritten("repeat of fewer axes")
    x += "".join(".unsqueeze(0)" for _ in range(len(trees) - rank))
    counts = [w.constant(tree) for tree in trees]
    axes = [*[1] * (len(trees) - rank), *(1 if all(s[i] == 1 for s in shapes) else 0 for i in range(rank))]
    spread = [str(n) if one and str(n) != "1" else "-1" for n, one in zip(counts, axes, strict=True)]
    if any(size != "-1" for size in spread):
        x = f"{x}.expand({', '.join(spread)})"
    for dim, (n, one) in enumerate(zip(counts, axes, strict=True)):
        if not one and str(n) != "1":
            x = w.call("concatenate", f"[{x}] * {n}, {dim}")
    return x


@on("repeat_interleave")
def _repeat_interleave(w: Writer, node: Node) -> str:
    given = w.given(node)
    n, dim, rank = w.constant(given["repeats"]), w.constant(given.get("dim")), w.rank(given["x"])
    if dim is None or not isinstance(n, int):
        raise NotWritten("repeat_interleave of all elements")
    dim %= rank
    sizes = ", ".join(["-1"] * (dim + 1) + [str(n)] + ["-1"] * (rank - dim - 1))
    return f"{w.tensor(given['x'], '')}.unsqueeze({dim + 1}).expand({sizes}).flatten({dim}, {dim + 1})"


def device_of(w: Writer) -> str:
    if not w.device:
        raise NotWritten("a tensor without a device")
    return w.device


@on("arange")
def _arange(w: Writer, node: Node) -> str:
    given = w.given(node)
    dtype = node.dtype
    if dtype not in ("int64", "float32"):
        raise NotWritten(f"arange of {dtype}")
    first, end = given.get("start"), given.get("end")  # arange(end) has its end first
    start, end = (w.constant(first, 0), w.constant(end)) if end is not None else (0, w.constant(first))
    step = w.constant(given.get("step"), 1)
    if not all(isinstance(each, int) for each in (start, end, step)) or step < 1:
        raise NotWritten("arange of fractions")
    n = str(end) if start == 0 else f"{end} - {start}"
    n = n if step == 1 else f"({n} + {step - 1}) // {step}"
    return w.call("counted", f"{n}, {start}, {step}, torch.{dtype}, {device_of(w)}")


@on("eye")
def _eye(w: Writer, node: Node) -> str:
    given = w.given(node)
    rows = w.constant(given["n"])
    if node.dtype != "float32":
        raise NotWritten(f"eye of {node.dtype}")
    return w.call("diagonal_of_ones", f"{rows}, {w.constant(given.get('m'), rows)}, {device_of(w)}")


@on("unfold")
def _unfold(w: Writer, node: Node) -> str:
    given = w.given(node)
    if node.kind != "method":  # `F.unfold` is of images
        raise NotWritten("patches of images")
    dim = w.constant(given["dim"]) % w.rank(given["x"])
    return w.call(
        "sliding_windows",
        f"{w.tensor(given['x'], '')}, {dim}, {w.constant(given['size'])}, {w.constant(given['step'])}",
    )


@on("tensor", "as_tensor")
def _scalar(w: Writer, node: Node) -> str:
    value = w.number(w.constant(w.given(node)["value"]))
    return f"torch.full((), {value}, device={device_of(w)}, dtype=torch.{node.dtype})"
