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
    x, target = node.args[0], node.args[1]
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
    one, other = node.args[0], node.args[1]
    dim, eps = setting(w, node, "dim", 1), setting(w, node, "eps", 1e-8)
    x, y = (w.call("normalize", f"{w.tensor(tree)}, {dim}, {eps}") for tree in (one, other))
    return w.call("reduce_sum", f"{w.call('mul', f'{x}, {y}')}, {dim}")


@on("layer:MultiheadAttention")
def _multi_head(w: Writer, node: Node) -> str:
    path, given = path_of(node), node.arguments
    width = given["embed_dim"]
    unlike = {"add_bias_kv", "add_zero_attn"} & given.keys() or {
        given.get("kdim", width),
        given.get("vdim", width),
    } != {width}
    switched = {k: v for k, v in node.kwargs.items() if v not in ({"value": None}, {"value": True})}
    switched.pop("need_weights", None)
    if switched.get("is_causal") == {"value": False}:
        switched.pop("is_causal")
    if len(node.args) < 3:
        names = ("query", "key", "value")
        trees = [*node.args, *(node.kwargs.get(name) for name in names[len(node.args) :])]
        for name in names:
            switched.pop(name, None)
    else:
        trees = node.args[:3]
    if unlike or switched or len(node.args) > 3 or None in trees or any(w.rank(tree) != 3 for tree in trees):
        raise NotWritten("attention of several heads with a mask, or of one image")
    return w.call("multi_head_attention_layer", ", ".join([*(w.tensor(tree) for tree in trees), path]))


@on("atleast_1d")
def _at_least(w: Writer, node: Node) -> str:
    if node.takes and w.rank(node.args[0]) >= 1:
        return w.atom(node.args[0])
    raise NotWritten("atleast_1d of a number")


@on("linspace")
def _linspace(w: Writer, node: Node) -> str:
    if len(node.args) < 2 or node.dtype != "float32":
        raise NotWritten("linspace of sizes")
    start, end = w.constant(node.args[0]), w.constant(node.args[1])
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
