"""Calls that several functions of the library compute together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelquarry.transforms.slice.traced_graph import Node

from .places import device_of
from .table import NotWritten, on, setting

if TYPE_CHECKING:
    from ..write_call import Writer


@on("mse_loss", "l1_loss", "binary_cross_entropy_with_logits")
def _loss(w: Writer, node: Node) -> str:
    x, target = w.given(node)["x"], w.given(node)["target"]
    reduction = setting(w, node, "reduction", "mean")
    if reduction not in ("mean", "sum", "none") or len(node.takes) != 2:
        raise NotWritten("a loss with weights")
    one, other = w.tensor(x), w.tensor(target)
    if node.operator == "binary_cross_entropy_with_logits":
        each = w.call("sub", f"{w.call('softplus', f'{one}, 1.0, 20.0')}, {w.call('mul', f'{one}, {other}')}")
    else:
        difference = w.call("sub", f"{one}, {other}")
        each = w.call("square" if node.operator == "mse_loss" else "absolute", difference)
    dims = tuple(range(max(w.rank(x), w.rank(target))))
    return each if reduction == "none" else w.call(f"reduce_{reduction}", f"{each}, {dims}")


@on("cosine_similarity")
def _cosine(w: Writer, node: Node) -> str:
    one, other = w.given(node)["x"], w.given(node)["other"]
    dim, eps = setting(w, node, "dim", 1), setting(w, node, "eps", 1e-8)
    x, y = (w.call("normalize", f"{w.tensor(tree)}, {dim}, {eps}") for tree in (one, other))
    return w.call("reduce_sum", f"{w.call('mul', f'{x}, {y}')}, {dim}")


@on("linspace")
def _linspace(w: Writer, node: Node) -> str:
    given = w.given(node)
    if node.dtype != "float32":
        raise NotWritten("linspace of integers")
    start, end, n = (w.constant(given[name]) for name in ("start", "end", "steps"))
    return w.call("counted", f"{n}, {start}, ({end} - {start}) / ({n} - 1), torch.float32, {device_of(w)}")


@on("_weight_norm")
def _weight_norm(w: Writer, node: Node) -> str:
    given = w.given(node)
    dim, rank = w.constant(given.get("dim"), 0), w.rank(given["x"])
    v, g = w.tensor(given["x"]), w.tensor(given["g"])
    dims = tuple(range(rank)) if dim in (None, -1) else tuple(d for d in range(rank) if d != dim % rank)
    scale = w.call("div", f"{g}, {w.call('vector_norm', f'{v}, {dims}, keepdim=True')}")
    return w.call("mul", f"{v}, {scale}")
