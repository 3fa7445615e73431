"""Write the lines of `forward` that raise for calls that the kernels were not written for."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping

from kernelquarry.pipeline.schema.records import Lowered
from kernelquarry.transforms.workloads.guards import Place, parse_guard, same_sizes, size_at

from ..constructor.constructor_slice import forward_of
from ..syntax.ast_tools import names_in, substitute, tuple_text
from .arguments import known_shapes, places, shape_of

_OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip

_MESSAGE = 70  # most characters of conditions in one message
_PLAIN = (bool, int, float, str, type(None))


class Checks:
    """Checks of the tensors that `forward` reads; `sizes` maps places to the names that `forward` has for sizes."""

    def __init__(self, lowered: Lowered, tensors: Mapping[int, str], sizes: Mapping[Place, str]) -> None:
        self._lowered = lowered
        self._tensors = tensors
        guards = [parse_guard(guard, of_module=True) for guard in lowered.guards]
        mentioned = set(map(size_at, names_in(*guards)))
        self._fixed = {place: size for place, size in fixed_sizes(lowered).items() if place not in mentioned}
        self._same = same_sizes(guards)
        self._guards = [guard for guard in guards if not same_sizes([guard])]
        self._sizes = {self._first(place): (place, name) for place, name in reversed(list(sizes.items()))}
        self.missing = sorted(self._needed() - self._sizes.keys())  # checked sizes without a name

    def lines(self, names: Mapping[Place, str]) -> list[str]:
        """Lines that check all arguments; `names` gives each place in `missing` a name."""
        self._sizes |= {place: (place, name) for place, name in names.items()}
        lines = [line for tensor in sorted(self._tensors) for line in self._shape_lines(tensor)]
        return [*_value_lines(self._lowered), *lines, *self._guard_lines()]

    def shape(self, argument: str) -> str:
        """The shape of a graph input, in the names of `forward`.

        "" for a tensor that `forward` makes of numbers, and if a size varies that `forward` does not read.
        """
        known = known_shapes(self._lowered).get(argument)
        if known is None:
            return ""
        varying = {size.size for size in self._lowered.constructor_sizes}
        place, sizes = places(self._lowered)[argument], list[str]()
        for axis, size in enumerate(known):
            varies = place[0] == "input" or f"{place[0]}{place[1]}_{axis}" in varying
            sizes.append(self._size((*place, axis)) or ("" if varies else str(size)))
        return tuple_text(sizes) if all(sizes) else ""

    def _size(self, place: Place) -> str:
        """A size as `forward` writes it, a number or a name; "" if `forward` does not read the size."""
        if place in self._fixed:
            return str(self._fixed[place])
        return self._sizes.get(self._first(place), (place, ""))[1]

    def _first(self, place: Place) -> Place:
        return self._same.get(place, place)

    def _axes(self, tensor: int) -> list[Place]:
        return [("input", tensor, axis) for axis in range(len(self._lowered.probed.workloads[0].tensors[tensor].shape))]

    def _needed(self) -> set[Place]:
        guarded = {place for name in names_in(*self._guards) if (place := size_at(name))}
        checked = {place for tensor in self._tensors if self._is_checked(tensor) for place in self._axes(tensor)}
        return {self._first(place) for place in guarded | checked if place not in self._fixed}

    def _is_checked(self, tensor: int) -> bool:
        """True if one of its sizes is fixed or must equal the size of another place."""

        def is_repeated(place: Place) -> bool:
            first = self._first(place)
            return self._sizes.get(first, (first, ""))[0] != place

        axes = self._axes(tensor)
        return any(place in self._fixed for place in axes) or any(map(is_repeated, axes))

    def _shape_lines(self, tensor: int) -> list[str]:
        if not self._is_checked(tensor):
            return []
        name, shape = self._tensors[tensor], tuple_text(list(map(self._size, self._axes(tensor))))
        message = f'f"{name} is {{tuple({name}.shape)}}, not {shape}"'
        return [f"if {name}.shape != {shape}:\n    raise ValueError({message})"]

    def _guard_lines(self) -> list[str]:
        conditions = [self._named(guard) for guard in self._guards]
        is_short = len(" and ".join(map(ast.unparse, conditions))) <= _MESSAGE
        groups = [conditions] if conditions and is_short else [[condition] for condition in conditions]
        lines = []
        for group in groups:
            broken = " or ".join(ast.unparse(_opposite(condition)) for condition in group)
            lines.append(_raising(broken, f"the kernels need {' and '.join(map(ast.unparse, group))}"))
        return lines

    def _named(self, guard: ast.expr) -> ast.expr:
        """The condition with the names that `forward` has for sizes."""
        places = {name: place for name in names_in(guard) if (place := size_at(name))}
        names = {name: self._sizes[self._first(place)][1] for name, place in places.items()}
        return substitute(guard, {name: ast.Name(text, ast.Load()) for name, text in names.items()})


def fixed_sizes(lowered: Lowered) -> dict[Place, int]:
    """The sizes that are numbers in the kernels: sizes that no workload varies, or all."""
    first, *others = lowered.probed.workloads
    compared = others if lowered.shape_general else []
    return {
        ("input", i, axis): size
        for i, spec in enumerate(first.tensors)
        for axis, size in enumerate(spec.shape)
        if all(other.tensors[i].shape[axis] == size for other in compared)
    }


def guards_of_calls(lowered: Lowered) -> tuple[str, ...]:
    """The guards about sizes that the workloads vary, with numbers for sizes of the module."""
    owners = {place: argument for argument, place in places(lowered).items()}
    fixed, found = fixed_sizes(lowered), list[str]()

    def number(source: str, index: int, axis: int) -> ast.expr:
        return ast.Constant(shape_of(lowered, owners[source, index])[axis])

    for guard in lowered.guards:
        condition = parse_guard(guard, of_module=True)
        sizes = {name: place for name in names_in(condition) if (place := size_at(name))}
        state = {name: number(*place) for name, place in sizes.items() if place[0] == "state"}
        if any(place not in fixed for name, place in sizes.items() if name not in state):
            found.append(ast.unparse(substitute(condition, state)) if state else guard)
    return tuple(found)


def _opposite(condition: ast.expr) -> ast.expr:
    match condition:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return ast.Compare(left, [_OPPOSITES[type(op)]()], [right])
    return ast.UnaryOp(ast.Not(), condition)


def _value_lines(lowered: Lowered) -> list[str]:
    """Lines that raise unless plain arguments have the values of the workloads, on which the trace depends.

    Arguments that the reference's `forward` does not read are not checked.
    """
    forward = forward_of(lowered.probed.python_code)
    if forward is None:
        return []
    read = set(names_in(*forward.body))
    values = {name: value for name, value in _values(lowered, forward.args).items() if name in read}
    if not values:
        return []
    broken = " or ".join(_differs(name, value) for name, value in values.items())
    expected = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return [_raising(broken, f"the kernels are written for {expected}")]


def _raising(condition: str, message: str) -> str:
    text = repr(message) if '"' in message else f'"{message}"'
    return f"if {condition}:\n    raise ValueError({text})"


def _values(lowered: Lowered, signature: ast.arguments) -> dict[str, object]:
    """Map arguments to the plain values that they have in every call, passed or by default."""
    workload = lowered.probed.workloads[0]
    positional = [argument.arg for argument in [*signature.posonlyargs, *signature.args]][1:]
    keyword_only = [argument.arg for argument in signature.kwonlyargs]
    defaults: list[tuple[str, ast.expr | None]] = [
        *zip(reversed(positional), reversed(signature.defaults), strict=False),
        *zip(keyword_only, signature.kw_defaults, strict=True),
    ]
    found: dict[str, object] = {name: value.value for name, value in defaults if isinstance(value, ast.Constant)}
    found |= dict(zip(positional, json.loads(workload.args), strict=False)) | json.loads(workload.kwargs)
    return {name: found[name] for name in [*positional, *keyword_only] if isinstance(found.get(name, ()), _PLAIN)}


def _differs(name: str, value: object) -> str:
    if value is None:
        return f"{name} is not None"
    if isinstance(value, bool):
        return f"not {name}" if value else name
    return f"{name} != {value!r}"
