"""Calls that several functions of the library compute together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelquarry.transforms.slice.traced_graph import Node

from .places import device_of
from .table import NotWritten, on, path_of, setting

if TYPE_CHECKING:
    from ..write_forward import Writer


@on(
    "mse_loss",
    "layer:MSELoss",
    "l1_loss",
    "layer:L1Loss",
    "binary_cross_entropy_with_logits",
    "layer:BCEWithLogitsLoss",
)
def _loss(w: Writer, node: Node) -> str:
    x, target = w.given(node)["x"], w.given(node)["target"]
    reduction = setting(w, node, "reduction", "mean")
    if reduction not in ("mean", "sum", "none") or len(node.takes) != 2:
        raise NotWritten("a loss with weights")
    one, other = w.tensor(x), w.tensor(target)
    if node.operator[0] in "bB":
        each = w.call("sub", f"{w.call('softplus', f'{one}, 1.0, 20.0')}, {w.call('mul', f'{one}, {other}')}")
    else:
        difference = w.call("sub", f"{one}, {other}")
        each = w.call("square" if "mse" in node.operator.lower() else "absolute", difference)
    dims = tuple(range(max(w.rank(x), w.rank(target))))
    return each if reduction == "none" else w.call(f"reduce_{reduction}", f"{each}, {dims}")


@on("cosine_similarity", "layer:CosineSimilarity")
def _cosine(w: Writer, node: Node) -> str:
    one, other = w.given(node)["x"], w.given(node)["other"]
    dim, eps = setting(w, node, "dim", 1), setting(w, node, "eps", 1e-8)
    x, y = (w.call("normalize", f"{w.tensor(tree)}, {dim}, {eps}") for tree in (one, other))
    return w.call("reduce_sum", f"{w.call('mul', f'{x}, {y}')}, {dim}")


@on("layer:MultiheadAttention")
def _multi_head(w: Writer, node: Node) -> str:
    given, width = w.given(node), node.arguments["embed_dim"]
    trees = [given[name] for name in ("x", "key", "value")]
    plain = {node.arguments.get("kdim", width), node.arguments.get("vdim", width)} == {width}
    extended = {"add_bias_kv", "add_zero_attn"} & node.arguments.keys()
    if not plain or extended or w.constant(given.get("is_causal"), False) or any(w.rank(tree) != 3 for tree in trees):
        raise NotWritten("another attention of several heads")
    return w.call("multi_head_attention_layer", ", ".join([*(w.tensor(tree) for tree in trees), path_of(node)]))


@on("atleast_1d")
def _at_least(w: Writer, node: Node) -> str:
    if node.takes and w.rank(w.given(node)["x"]) >= 1:
        return w.atom(w.given(node)["x"])
    raise NotWritten("atleast_1d of a number")


@on("linspace")
def _linspace(w: Writer, node: Node) -> str:
    given = w.given(node)
    given.unread.discard("steps")  # the size is that of the result
    if node.dtype != "float32":
        raise NotWritten("linspace of integers")
    start, end = w.constant(given["start"]), w.constant(given["end"])
    n = w.size(tuple(shape[0] for shape in node.shapes))
    step = f"({end} - {start}) / ({n} - 1)" if not n.isdigit() else repr((end - start) / max(int(n) - 1, 1))
    return w.call("counted", f"{n}, {float(start)}, {step}, torch.float32, {device_of(w)}")


@on("_weight_norm")
def _weight_norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    dim, rank = w.constant(given.get("dim"), 0), w.rank(given["x"])
    v, g = w.tensor(given["x"]), w.tensor(given["g"])
    dims = tuple(range(rank)) if dim in (None, -1) else tuple(d for d in range(rank) if d != dim % rank)
    scale = w.call("div", f"{g}, {w.call('vector_norm', f'{v}, {dims}, keepdim=True')}")
    return w.call("mul", f"{v}, {scale}")
