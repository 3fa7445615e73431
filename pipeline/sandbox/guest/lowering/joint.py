"""Trace a module's forward with its gradients as one graph, and cut the graph into a forward and a backward.

AOTAutograd's partitioner cuts: it saves as little as possible for the backward, which computes the rest again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx  # type: ignore[import-untyped]  # noqa: F401  for the partitioner; imported in the warm process
import sympy
import torch
from torch import Tensor
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.overrides import TorchFunctionMode

from .refusal import NotLowered

aten = torch.ops.aten

Function = Callable[..., list[Tensor]]


@dataclass(frozen=True, slots=True)
class Joint:
    """Sizes of a joint graph: its inputs are inputs of the forward, then gradients of outputs."""

    inputs: int  # of the forward
    outputs: int  # of the forward; gradients follow them
    differentiable: tuple[int, ...]  # outputs that have a gradient


@dataclass(frozen=True, slots=True)
class Halves:
    """A joint graph, cut into a forward and a backward graph."""

    forward: GraphModule  # results: the outputs, then saved values
    backward: GraphModule  # saved values and gradients of outputs -> gradients of the forward's inputs, or None


def prepare(call: Function, given: Sequence[Tensor], needs: Sequence[bool]) -> tuple[Joint, Function, list[Tensor]]:
    """The joint function, and gradients of outputs to trace it on; `needs` selects the inputs that get a gradient.

    Raises:
        NotLowered: no output has a gradient.
    """

    def forward(flat: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        leaves = [value.detach().requires_grad_(need) for value, need in zip(flat, needs, strict=True)]
        with torch.enable_grad(), _PlainAttention():
            return leaves, call(*leaves)

    _, outputs = forward(given)
    if any(not isinstance(output, Tensor) for output in outputs):
        raise NotLowered("GRAPH_BREAK", "forward returns a size")
    joint = Joint(len(given), len(outputs), tuple(i for i, output in enumerate(outputs) if output.requires_grad))
    if not joint.differentiable:
        raise NotLowered("NO_GRADIENT", "no output depends on a parameter or a floating-point input by numbers")

    def both(*flat: Tensor) -> list[Tensor]:
        leaves, results = forward(flat[: joint.inputs])
        ends = [results[index] for index in joint.differentiable]
        wanted = [leaf for leaf, need in zip(leaves, needs, strict=True) if need]
        found = iter(torch.autograd.grad(ends, wanted, flat[joint.inputs :], allow_unused=True))
        return [*results, *(next(found) if need else None for need in needs)]  # type: ignore[list-item]

    return joint, both, [torch.empty(outputs[i].shape, dtype=outputs[i].dtype) for i in joint.differentiable]


class _PlainAttention(TorchFunctionMode):
    """Replace attention by its formula, as fused kernels have gradients of their own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            return aten._scaled_dot_product_attention_math(*args, **(kwargs or {}))[0]
        return func(*args, **(kwargs or {}))


def cut(graph: GraphModule, inputs: Sequence[Tensor], joint: Joint) -> Halves:
    """Cut a joint graph.

    Raises:
        NotLowered: the backward needs sizes that it does not get, or has no results.
    """
    _without_aliases(graph)
    for number, node in enumerate(node for node in graph.graph.nodes if node.op == "placeholder"):
        # The partitioner recognises inputs by these names.
        node.name = node.target = f"primals_{number}" if number < joint.inputs else f"tangents_{number - joint.inputs}"
    graph.recompile()
    forward, backward = min_cut_rematerialization_partition(graph, inputs, num_fwd_outputs=joint.outputs)
    for node in backward.graph.nodes:
        node.meta = dict(node.meta)  # the other half shares it and renames sizes in its own copy
    if not any(isinstance(value, Node) for value in results(backward)):
        raise NotLowered("NO_GRADIENT", "every gradient is none")
    if _unknown_sizes(backward):
        raise NotLowered("GRAPH_BREAK", "the backward needs sizes that it is not given")
    return Halves(forward, backward)


def _unknown_sizes(backward: GraphModule) -> set[sympy.Symbol]:
    """Symbols in the inputs that are neither a size of an input nor an input themselves."""
    values = [node.meta["val"] for node in backward.graph.find_nodes(op="placeholder")]
    sizes = [size for value in values for size in (value.shape if isinstance(value, Tensor) else (value,))]
    symbols = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
    return {symbol for value in values for symbol in free_symbols(value)} - set(symbols)


def results(graph: GraphModule) -> list[Node | None]:
    (output,) = graph.graph.find_nodes(op="output")
    return list(output.args[0])


def _without_aliases(graph: GraphModule) -> None:
    """Drop autograd's detached copies and transposes of transposes."""
    for node in list(graph.graph.nodes):
        if node.target in (aten.alias.default, aten.detach.default):
            node.replace_all_uses_with(node.args[0])
        elif node.target is aten.permute.default and node.args[0].target is aten.permute.default:
            (base, first), second = node.args[0].args, node.args[1]
            if [first[axis] for axis in second] == list(range(len(first))):
                node.replace_all_uses_with(base)
    graph.graph.eliminate_dead_code()
