"""Mistakes in the use of the module's parameters and buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelquarry.pipeline.schema.records import StateSpec

from .operator import Fault, source_operator
from .source_edits import Edit, Source


def _uses(source: Source) -> Iterator[tuple[ast.expr, StateSpec]]:
    """Expressions in forward that name a floating-point entry of the state."""
    for node in source.forward_nodes:
        if isinstance(node, ast.Attribute):
            spec = source.state.get(_state_name(node))
            if spec is not None and spec.dtype.startswith(("float", "bfloat")):
                yield node, spec


def _state_name(node: ast.expr) -> str:
    """`blocks.0.weight` for `self.blocks[0].weight`."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            return f"{_state_name(owner)}.{name}"
        case ast.Subscript(value=owner, slice=ast.Constant(value=int(index))):
            return f"{_state_name(owner)}.{index}"
    return ""


@source_operator(Fault.PARAMETERS, "a parameter without effect")
def parameter_ignored(source: Source) -> Iterator[Edit]:
    """Replace a bias or mean by zeros, any other entry by ones."""
    for node, spec in _uses(source):
        neutral = "zeros_like" if spec.name.endswith(("bias", "mean")) else "ones_like"
        yield source.replace(node, f"torch.{neutral}({source.text(node)})")


@source_operator(Fault.PARAMETERS, "a parameter's initial value")
def parameter_initial(source: Source) -> Iterator[Edit]:
    """Replace an entry by the constant that the constructor fills it with."""
    for node, spec in _uses(source):
        if spec.std == 0:
            yield source.replace(node, f"torch.full_like({source.text(node)}, {spec.mean!r})")


@source_operator(Fault.PARAMETERS, "a parameter's value in the first call")
def parameter_kept(source: Source) -> Iterator[Edit]:
    """Keep using the values that an entry had in the first call."""
    for node, spec in _uses(source):
        name = "kept_" + spec.name.replace(".", "_")
        made = f"self.register_buffer({name!r}, {source.text(node)}.clone(), False)"
        yield source.replace(node, f"((None if hasattr(self, {name!r}) else {made}) or self.{name})")


@source_operator(Fault.PARAMETERS, "another parameter of the same shape")
def parameter_of_another(source: Source) -> Iterator[Edit]:
    """Use another entry of the same shape: the running variance for the mean, or another layer's weight."""
    uses = list(_uses(source))
    for node, spec in uses:
        others = {source.text(other): 0 for other, its in uses if its.name != spec.name and its.shape == spec.shape}
        for text in others:
            yield source.replace(node, text)


@source_operator(Fault.PARAMETERS, "a parameter transposed")
def parameter_transposed(source: Source) -> Iterator[Edit]:
    for node, spec in _uses(source):
        if len(spec.shape) >= 2 and spec.shape[0] == spec.shape[1] > 1:
            yield source.replace(node, f"{source.text(node)}.transpose(0, 1).contiguous()")
