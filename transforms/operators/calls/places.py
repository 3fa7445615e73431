"""Calls that join, turn, make or read elements by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelquarry.transforms.slice.traced_graph import Node

from .table import NotWritten, on, path_of, repeated

if TYPE_CHECKING:
    from ..write_forward import Writer


@on("cat", "concat", "concatenate", "stack")
def _cat(w: Writer, node: Node) -> str:
    given = w.given(node)
    trees = given["x"].get("list") or given["x"].get("tuple") or []
    dim = w.constant(given.get("dim"), 0)
    dtypes = {w.node(tree).dtype for tree in trees}
    if len(dtypes) != 1 or not trees or any(0 in shape for tree in trees for shape in w.node(tree).shapes):
        raise NotWritten("cat of several dtypes")
    texts = [w.tensor(tree, "") for tree in trees]
    if node.operator == "stack":
        texts = [f"{text}.unsqueeze({dim})" for text in texts]
    return w.call("concatenate", f"({', '.join(texts)}{',' * (len(texts) == 1)}), {dim}")


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
    return w.call("concatenate", f"({x}[{at}{-shift}:], {x}[{at}:{-shift}]), {dim}")


@on("index_select")
def _index_select(w: Writer, node: Node) -> str:
    given = w.given(node)
    return w.call(
        "index_select", f"{w.tensor(given['x'], '')}, {w.constant(given['dim'])}, {w.tensor(given['index'], 'int64')}"
    )


@on("gather")
def _gather(w: Writer, node: Node) -> str:
    given = w.given(node)
    dim = w.constant(given["dim"])
    x, index = w.node(given["x"]), w.node(given["index"])
    others = [
        (one, other)
        for shape, second in zip(x.shapes, index.shapes, strict=False)
        for axis, (one, other) in enumerate(zip(shape, second, strict=True))
        if axis != dim % len(shape)
    ]
    if any(one != other for one, other in others):
        raise NotWritten("gather of a part")
    return w.call("gather_axis", f"{w.tensor(given['x'], '')}, {dim}, {w.tensor(given['index'], 'int64')}")


@on("embedding", "layer:Embedding")
def _embedding(w: Writer, node: Node) -> str:
    given = w.given(node)
    if node.kind == "layer":
        if "max_norm" in node.arguments:
            raise NotWritten("an embedding that changes")
        return w.call("embedding", f"{w.tensor(given['x'], 'int64')}, {path_of(node)}.weight")
    return w.call("embedding", f"{w.tensor(given['x'], 'int64')}, {w.tensor(given['weight'])}")


@on("tril", "triu")
def _triangle(w: Writer, node: Node) -> str:
    given = w.given(node)
    diagonal = w.constant(given.get("diagonal"), 0)
    return w.call("triangle", f"{w.tensor(given['x'])}, {diagonal}, {node.operator == 'tril'}")


@on("repeat", "tile")
def _repeat(w: Writer, node: Node) -> str:
    given = w.given(node)
    trees = given["sizes"].get("tuple") or given["sizes"].get("list")
    x, shapes = w.tensor(given["x"], ""), w.node(given["x"]).shapes
    rank = len(shapes[0])
    if len(trees) < rank:
        raise NotWritten("repeat of fewer axes")
    place = given["x"]["node"]
    x += "".join(".unsqueeze(0)" for _ in range(len(trees) - rank))
    axes = [*[1] * (len(trees) - rank), *(1 if all(s[i] == 1 for s in shapes) else 0 for i in range(rank))]
    spread = [w.text(tree) if one and tree != {"value": 1} else "-1" for tree, one in zip(trees, axes, strict=True)]
    if any(size != "-1" for size in spread):
        x = f"{x}.expand({', '.join(spread)})"
    for dim, (tree, one) in enumerate(zip(trees, axes, strict=True)):
        if not one and tree != {"value": 1}:
            x = w.call(
                "concatenate",
                f"[{x}] * {w.size(tuple(tree['sizes']), place) if 'sizes' in tree else w.constant(tree)}, {dim}",
            )
    return x


@on("repeat_interleave")
def _repeat_interleave(w: Writer, node: Node) -> str:
    given = w.given(node)
    n, dim, rank = w.constant(given["repeats"]), w.constant(given.get("dim")), w.rank(given["x"])
    if dim is None or not isinstance(n, int):
        raise NotWritten("repeat_interleave of all elements")
    dim %= rank
    sizes = ", ".join(["-1"] * (dim + 1) + [str(n)] + ["-1"] * (rank - dim - 1))
    return f"{w.atom(given['x'])}.unsqueeze({dim + 1}).expand({sizes}).flatten({dim}, {dim + 1})"


def device_of(w: Writer) -> str:
    if not w.inputs:
        raise NotWritten("no input that has a device")
    return f"{w.graph[w.inputs[0]].name}.device"  # whatever it holds by now, it is on that device


@on("arange")
def _arange(w: Writer, node: Node) -> str:
    given = w.given(node)
    dtype = node.dtype
    if dtype not in ("int64", "float32"):
        raise NotWritten(f"arange of {dtype}")
    first, end = given.get("start"), given.get("end")  # arange(end) has its end first; the size is that of the result
    start, step = w.constant(first, 0) if end is not None else 0, w.constant(given.get("step"), 1)
    counts = tuple(shape[0] for shape in node.shapes)
    n = w.size(counts)
    return w.call("counted", f"{n}, {start}, {step}, torch.{dtype}, {device_of(w)}")


@on("zeros", "ones", "full", "new_zeros", "new_ones", "new_full")
def _filled_shape(w: Writer, node: Node) -> str:
    given = w.given(node)
    given.unread.discard("x")  # of `x.new_zeros`, which has the dtype
    found = given["sizes"]
    trees = found.get("tuple") or found.get("list") or ([] if "tuple" in found or "list" in found else [found])
    sizes = w.shape(trees, None, free=False)
    name = node.operator.removeprefix("new_")
    value = f", {w.number(w.constant(given['value']))}" if name == "full" else ""
    shape = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    return f"torch.{name}({shape}{value}, device={device_of(w)}, dtype=torch.{node.dtype})"


@on("zeros_like", "ones_like", "full_like")
def _filled_like(w: Writer, node: Node) -> str:
    given = w.given(node)
    value = f", {w.number(w.constant(given['value']))}" if node.operator == "full_like" else ""
    return f"torch.{node.operator}({w.atom(given['x'])}{value}, dtype=torch.{node.dtype})"


@on("tensor", "as_tensor")
def _scalar(w: Writer, node: Node) -> str:
    given = w.given(node)
    value = w.number(w.constant(given["value"]))
    return f"torch.full((), {value}, device={device_of(w)}, dtype=torch.{node.dtype})"
