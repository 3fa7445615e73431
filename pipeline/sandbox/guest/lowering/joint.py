"""A module's forward with its gradients: one graph of both, cut into a forward and a backward.

The cut is AOTAutograd's: of what the backward needs, the least is handed over, and the rest is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx  # type: ignore[import-untyped]  # noqa: F401  the cut needs it: imported once, in the warm process
import sympy
import torch
from torch import Tensor
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.overrides import TorchFunctionMode

from .refusal import Refused

aten = torch.ops.aten

Function = Callable[..., list[Tensor]]


@dataclass(frozen=True, slots=True)
class Joint:
    """What a graph of both is made of: its inputs are those of the forward, then the gradients of outputs."""

    inputs: int  # of the forward
    outputs: int  # of the forward, before the gradients
    differentiable: tuple[int, ...]  # outputs that a gradient flows from


@dataclass(frozen=True, slots=True)
class Halves:
    """Results of `forward` are the outputs, then what is saved; inputs of `backward` are `saved`, then the gradients
    of outputs; its results are the gradients of the forward's inputs, None where none flows."""

    forward: GraphModule
    backward: GraphModule


def prepare(call: Function, given: Sequence[Tensor], needs: Sequence[bool]) -> tuple[Joint, Function, list[Tensor]]:
    """The function of both, and the gradients of outputs to trace it on; `needs` says which of `given` get a gradient.

    Raises:
        Refused: no gradient flows.
    """

    def forward(flat: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        leaves = [value.detach().requires_grad_(need) for value, need in zip(flat, needs, strict=True)]
        with torch.enable_grad(), _PlainAttention():
            return leaves, call(*leaves)

    _, outputs = forward(given)
    if any(not isinstance(output, Tensor) for output in outputs):
        raise Refused("GRAPH_BREAK", "forward returns a size")
    joint = Joint(len(given), len(outputs), tuple(i for i, output in enumerate(outputs) if output.requires_grad))
    if not joint.differentiable:
        raise Refused("NO_GRADIENT", "no output depends on a parameter or a floating-point input by numbers")

    def both(*flat: Tensor) -> list[Tensor]:
        leaves, results = forward(flat[: joint.inputs])
        ends = [results[index] for index in joint.differentiable]
        wanted = [leaf for leaf, need in zip(leaves, needs, strict=True) if need]
        found = iter(torch.autograd.grad(ends, wanted, flat[joint.inputs :], allow_unused=True))
        return [*results, *(next(found) if need else None for need in needs)]  # type: ignore[list-item]

    return joint, both, [torch.empty(outputs[i].shape, dtype=outputs[i].dtype) for i in joint.differentiable]


class _PlainAttention(TorchFunctionMode):
    """Attention as its formula, whichever fused kernel the module asks for: those have gradients of their own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            return _attention(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    plain = aten._scaled_dot_product_attention_math
    return plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]


def cut(graph: GraphModule, inputs: Sequence[Tensor], joint: Joint) -> Halves:
    """Cuts the graph of both.

    Raises:
        Refused: the backward needs sizes that it is not given, or gives nothing.
    """
    _without_aliases(graph)
    for number, node in enumerate(node for node in graph.graph.nodes if node.op == "placeholder"):
        # The names by which the partitioner tells them apart.
        node.name = node.target = f"primals_{number}" if number < joint.inputs else f"tangents_{number - joint.inputs}"
    graph.recompile()
    forward, backward = min_cut_rematerialization_partition(graph, inputs, num_fwd_outputs=joint.outputs)
    for node in backward.graph.nodes:
        node.meta = dict(node.meta)  # shared with the other half, which renames sizes in its own
    if not any(isinstance(value, Node) for value in results(backward)):
        raise Refused("NO_GRADIENT", "every gradient is none")
    if _unknown_sizes(backward):
        raise Refused("GRAPH_BREAK", "the backward needs sizes that it is not given")
    return Halves(forward, backward)


def _unknown_sizes(backward: GraphModule) -> set[sympy.Symbol]:
    """Symbols in what it is given that are neither the size of a tensor among that, nor given as numbers."""
    values = [node.meta["val"] for node in backward.graph.find_nodes(op="placeholder")]
    sizes = [size for value in values for size in (value.shape if isinstance(value, Tensor) else (value,))]
    symbols = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
    return {symbol for value in values for symbol in free_symbols(value)} - set(symbols)


def results(graph: GraphModule) -> list[Node | None]:
    """What the graph returns."""
    (output,) = graph.graph.find_nodes(op="output")
    return list(output.args[0])


def _without_aliases(graph: GraphModule) -> None:
    """Autograd's detached copies are what they are copies of; a transpose of a transpose is the matrix itself."""
    for node in list(graph.graph.nodes):
        if node.target in (aten.alias.default, aten.detach.default):
            node.replace_all_uses_with(node.args[0])
        elif node.target is aten.permute.default and node.args[0].target is aten.permute.default:
            (base, first), second = node.args[0].args, node.args[1]
            if [first[axis] for axis in second] == list(range(len(first))):
                node.replace_all_uses_with(base)
    graph.graph.eliminate_dead_code()
