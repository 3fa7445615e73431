"""What `forward` checks before it launches anything: that the call is one that the kernels were written for."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence

from kernelquarry.pipeline.schema.records import Lowered
from kernelquarry.transforms.workloads.guards import parse_guard, size_at

from ..constructor.constructor_slice import forward_of

_OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip

_MESSAGE = 70  # characters of conditions that one message has room for
_PLAIN = (bool, int, float, str, type(None))

Place = tuple[int, int]  # a tensor of the call, and its axis


class Checks:
    """The lines, for the tensors that `forward` reads and the sizes that it has names for."""

    def __init__(self, lowered: Lowered, tensors: Mapping[int, str], sizes: Mapping[Place, str]) -> None:
        self._lowered = lowered
        self._tensors = tensors
        self._fixed = _fixed_sizes(lowered)
        self._same = _same_sizes(lowered.guards)
        self._guards = [parse_guard(guard) for guard in lowered.guards if not _same_sizes([guard])]
        self._sizes = {self._first(place): (place, name) for place, name in reversed(list(sizes.items()))}
        self.missing = sorted(self._needed() - self._sizes.keys())  # sizes that the lines are about and have no name

    def lines(self, names: Mapping[Place, str]) -> list[str]:
        """The lines; `names` are those of what was missing."""
        self._sizes |= {place: (place, name) for place, name in names.items()}
        lines = [line for tensor in sorted(self._tensors) for line in self._shape_lines(tensor)]
        return [*_value_lines(self._lowered), *lines, *self._guard_lines()]

    def _first(self, place: Place) -> Place:
        return self._same.get(place, place)

    def _axes(self, tensor: int) -> list[Place]:
        return [(tensor, axis) for axis in range(len(self._lowered.probed.workloads[0].tensors[tensor].shape))]

    def _needed(self) -> set[Place]:
        used = {n.id for guard in self._guards for n in ast.walk(guard) if isinstance(n, ast.Name)}
        guarded = {place for name in used if (place := size_at(name))}
        checked = {place for tensor in self._tensors if self._is_checked(tensor) for place in self._axes(tensor)}
        return {self._first(place) for place in guarded | checked if place not in self._fixed}

    def _is_checked(self, tensor: int) -> bool:
        """Whether a size of it is a number, or is the same as one that another place gives the name."""
        axes = self._axes(tensor)
        return any(place in self._fixed for place in axes) or any(self._is_again(place) for place in axes)

    def _is_again(self, place: Place) -> bool:
        first = self._first(place)
        return self._sizes.get(first, (first, ""))[0] != place

    def _shape_lines(self, tensor: int) -> list[str]:
        if not self._is_checked(tensor):
            return []
        axes, name = self._axes(tensor), self._tensors[tensor]
        sizes = [str(self._fixed[place]) if place in self._fixed else self._name(place) for place in axes]
        shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        message = f'f"{name} is {{tuple({name}.shape)}}, not {shape}"'
        return [f"if {name}.shape != {shape}:\n    raise ValueError({message})"]

    def _name(self, place: Place) -> str:
        return self._sizes[self._first(place)][1]

    def _guard_lines(self) -> list[str]:
        if not self._guards:
            return []
        conditions = [self._named(guard) for guard in self._guards]
        needed = " and ".join(map(ast.unparse, conditions))
        groups = [conditions] if len(needed) <= _MESSAGE else [[condition] for condition in conditions]
        return [self._needing(group) for group in groups]

    def _needing(self, conditions: Sequence[ast.expr]) -> str:
        broken = " or ".join(ast.unparse(_opposite(condition)) for condition in conditions)
        return _raising(broken, f"the kernels need {' and '.join(map(ast.unparse, conditions))}")

    def _named(self, guard: ast.expr) -> ast.expr:
        name = self._name

        class Naming(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.Name:
                place = size_at(node.id)
                return ast.Name(name(place), node.ctx) if place else node

        return Naming().visit(guard)


def _fixed_sizes(lowered: Lowered) -> dict[Place, int]:
    """The sizes that are numbers in the kernels: those that no workload varies, or all."""
    first, *others = lowered.probed.workloads
    compared = others if lowered.shape_general else []
    return {
        (i, axis): size
        for i, spec in enumerate(first.tensors)
        for axis, size in enumerate(spec.shape)
        if all(other.tensors[i].shape[axis] == size for other in compared)
    }


def _same_sizes(guards: Sequence[str]) -> dict[Place, Place]:
    """Size -> the first that guards say it is the same as."""
    found: dict[Place, Place] = {}
    for guard in guards:
        match parse_guard(guard):
            case ast.Compare(left=ast.Name(left), ops=[ast.Eq()], comparators=[ast.Name(right)]):
                places = size_at(left), size_at(right)
                if places[0] and places[1]:
                    found[places[0]] = places[1]
    return found


def _opposite(condition: ast.expr) -> ast.expr:
    match condition:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return ast.Compare(left, [_OPPOSITES[type(op)]()], [right])
    return ast.UnaryOp(ast.Not(), condition)


def _value_lines(lowered: Lowered) -> list[str]:
    """Lines that raise unless what is given beside tensors is what the workloads give: the trace went by it.

    Only of arguments that the reference's `forward` reads, which have a plain value.
    """
    forward = forward_of(lowered.probed.python_code)
    if forward is None:
        return []
    read = {node.id for statement in forward.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    values = {name: value for name, value in _values(lowered, forward.args).items() if name in read}
    if not values:
        return []
    broken = " or ".join(_differs(name, value) for name, value in values.items())
    told = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return [_raising(broken, f"the kernels are written for {told}")]


def _raising(condition: str, message: str) -> str:
    text = repr(message) if '"' in message else f'"{message}"'
    return f"if {condition}:\n    raise ValueError({text})"


def _values(lowered: Lowered, signature: ast.arguments) -> dict[str, object]:
    """Argument -> the plain value that it has in every call: given, or its default."""
    workload = lowered.probed.workloads[0]
    positional = [argument.arg for argument in [*signature.posonlyargs, *signature.args]][1:]
    found: dict[str, object] = {}
    for name, default in zip(reversed(positional), reversed(signature.defaults), strict=False):
        found |= _constant(name, default)
    for argument, value in zip(signature.kwonlyargs, signature.kw_defaults, strict=True):
        found |= _constant(argument.arg, value)
    named = [*positional, *(argument.arg for argument in signature.kwonlyargs)]
    given = dict(zip(positional, json.loads(workload.args), strict=False)) | json.loads(workload.kwargs)
    found |= {name: value for name, value in given.items() if name in named}
    return {name: found[name] for name in named if name in found and isinstance(found[name], _PLAIN)}


def _constant(name: str, value: ast.expr | None) -> dict[str, object]:
    return {name: value.value} if isinstance(value, ast.Constant) else {}


def _differs(name: str, value: object) -> str:
    if value is None:
        return f"{name} is not None"
    if isinstance(value, bool):
        return f"not {name}" if value else name
    return f"{name} != {value!r}"
