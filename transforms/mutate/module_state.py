"""The module's state, used wrongly."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from kernelquarry.pipeline.schema.records import StateSpec

from .operator import Fault, Operator
from .source_edits import Edit, Source

State = Mapping[str, StateSpec]


def _uses(source: Source, state: State) -> Iterator[tuple[ast.expr, StateSpec]]:
    """Where forward names an entry of the state."""
    for node in source.forward_nodes:
        if isinstance(node, ast.Attribute):
            spec = state.get(_dotted(node))
            if spec is not None and spec.dtype.startswith(("float", "bfloat")):
                yield node, spec


def _dotted(node: ast.expr) -> str:
    """`blocks.0.weight` for `self.blocks[0].weight`."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            return f"{_dotted(owner)}.{name}"
        case ast.Subscript(value=owner, slice=ast.Constant(value=int(index))):
            return f"{_dotted(owner)}.{index}"
    return ""


def ignored(source: Source, state: State) -> Iterator[Edit]:
    """Zero for what is added, one for what is multiplied."""
    for node, spec in _uses(source, state):
        neutral = "zeros_like" if spec.name.endswith(("bias", "mean")) else "ones_like"
        yield source.replace(node, f"torch.{neutral}({source.text(node)})")


def initial(source: Source, state: State) -> Iterator[Edit]:
    """The number that the constructor fills it with."""
    for node, spec in _uses(source, state):
        if spec.std == 0:
            yield source.replace(node, f"torch.full_like({source.text(node)}, {spec.mean!r})")


def kept(source: Source, state: State) -> Iterator[Edit]:
    """Its value in the first call."""
    for node, spec in _uses(source, state):
        name = "kept_" + spec.name.replace(".", "_")
        made = f"self.register_buffer({name!r}, {source.text(node)}.clone(), False)"
        yield source.replace(node, f"((None if hasattr(self, {name!r}) else {made}) or self.{name})")


def of_another(source: Source, state: State) -> Iterator[Edit]:
    """Another entry of the same shape: running variance for mean, the weight of another layer."""
    uses = list(_uses(source, state))
    for node, spec in uses:
        others = {source.text(other): 0 for other, its in uses if its.name != spec.name and its.shape == spec.shape}
        for text in others:
            yield source.replace(node, text)


def transposed(source: Source, state: State) -> Iterator[Edit]:
    for node, spec in _uses(source, state):
        if len(spec.shape) >= 2 and spec.shape[0] == spec.shape[1] > 1:
            yield source.replace(node, f"{source.text(node)}.transpose(0, 1).contiguous()")


def operators(state: State) -> tuple[Operator, ...]:
    """For a module with this state."""

    def operator(name: str, what: str, find: Callable[[Source, State], Iterator[Edit]]) -> Operator:
        return Operator(name, Fault.PARAMETERS, what, lambda source: find(source, state))

    return (
        operator("parameter_ignored", "a parameter without effect", ignored),
        operator("parameter_initial", "a parameter's initial value", initial),
        operator("parameter_kept", "a parameter's value in the first call", kept),
        operator("parameter_of_another", "another parameter of the same shape", of_another),
        operator("parameter_transposed", "a parameter transposed", transposed),
    )
