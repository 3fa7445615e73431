"""Write a forward and its backward as one `torch.autograd.Function`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Backward, Lowered, Source

from ..kernel.passes import uses
from ..read.inductor_source import RawSource, parse
from ..syntax.ast_tools import unused_name
from ..syntax.print_code import wrapped
from .arguments import Argument, result, short_roles, size_word
from .call_guards import Checks
from .forward_body import Body, FileNames, Words

NAME = f"{CANDIDATE_ENTRY_POINT}Function"


@dataclass(frozen=True, slots=True)
class Function:
    """The class, and its use in the module."""

    text: str
    call: list[str]  # lines of the module's `forward`
    bodies: tuple[Body, Body]  # of its forward and its backward


def render_function(lowered: Lowered, raw: RawSource, given: Mapping[str, Argument], words: Words) -> Function:
    """Write the function of a module; `given` and `words` are the arguments and names of the module's `forward`.

    Raises:
        NotTidied: one of the two sources has an unknown form.
    """
    (source,) = lowered.backward
    names = dict(zip(given, short_roles([argument.role for argument in given.values()]), strict=True))
    inner = {key: Argument(names[key], given[key].role, given[key].is_input) for key in given}
    file, saved = FileNames(), _Saved(source, parse(source.inductor_code), set(names.values()))
    forward = Body(raw, inner, Words({"ctx", *names.values()}, words.sizes, saved.results), file, saved.end_forward)
    passed: list[str] = []

    def end_backward(values: list[str]) -> list[str]:
        needed = forward.used
        pairs = [(key, value) for key, value in zip(names, values, strict=True) if key in needed or value != "None"]
        pairs.sort(key=lambda pair: not given[pair[0]].is_input)  # tensors of the call first, then state
        passed.extend(key for key, _ in pairs)
        return [f"return {', '.join(value for _, value in pairs)}"]

    taken = {"ctx", *saved.names.values()}
    gradients = [unused_name(f"{name}_grad", taken) for name in saved.outputs]
    inputs: dict[str, Argument] = {}
    for binding in source.bindings:
        index, is_gradient = int(binding.name), binding.source is Source.GRADIENT
        name = gradients[index] if is_gradient else saved.names.get(index, binding.argument)
        inputs[binding.argument] = Argument(name, name, is_gradient)
    wanted = tuple(f"{name}_grad" for name in names.values())
    backward = Body(saved.raw, inputs, Words(taken, {**words.sizes, **forward.sizes}, wanted), file, end_backward)
    docstring = '"""The forward, and the gradients that follow from what it saves."""'
    methods = (
        _method("forward", ["ctx", *(names[key] for key in passed)], forward.lines),
        _method("backward", ["ctx", *gradients], [*saved.begin_backward, *backward.lines], "@once_differentiable"),
    )
    text = "\n\n".join([f"class {NAME}(torch.autograd.Function):\n    {docstring}", *methods])
    call = _call(lowered, saved.outputs, passed, given, set(words.taken))
    return Function(text, call, (forward, backward))


class _Saved:
    """Values that the forward saves for the backward: the last lines of the one and the first lines of the other."""

    def __init__(self, source: Backward, raw: RawSource, arguments: set[str]) -> None:
        def numbers(kind: Source) -> dict[str, int]:
            return {one.argument: int(one.name) for one in source.bindings if one.source is kind}

        self.raw = raw
        self._arguments = arguments
        self._tensors = sorted(numbers(Source.SAVED).values())
        self._sizes = _sizes_needed(raw, numbers(Source.SIZE))
        self._differentiable = set(numbers(Source.GRADIENT).values())
        # The number of outputs, which come before the saved values; None if nothing is saved.
        self._count = min([*self._tensors, *numbers(Source.SIZE).values()], default=None)
        self.outputs: list[str] = []  # names of the outputs
        self.names: dict[int, str] = {}  # index among the forward's results -> name of a saved value

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the forward's results, see `Words`."""
        return ("out",) if self._count is None else (*["out"] * self._count, "")

    def end_forward(self, values: list[str]) -> list[str]:
        taken = {"ctx", *self._arguments, *filter(str.isidentifier, values)}
        self.outputs = [_named(value, "out", taken) for value in values[: self._count]]
        self.names = {index: _named(values[index], "", taken) for index in [*self._tensors, *self._sizes]}
        lines = [f"{name} = {value}" for name, value in zip(self.outputs, values, strict=False) if name != value]
        if self._tensors:
            lines.append(f"ctx.save_for_backward({', '.join(values[index] for index in self._tensors)})")
        if self._sizes:
            lines.append(f"ctx.sizes = {_tuple([values[index] for index in self._sizes])}")
        if constant := [name for index, name in enumerate(self.outputs) if index not in self._differentiable]:
            lines.append(f"ctx.mark_non_differentiable({', '.join(constant)})")
        return [*lines, f"return {', '.join(self.outputs)}"]

    @property
    def begin_backward(self) -> list[str]:
        lines = [_unpacked([self.names[index] for index in self._tensors])] if self._tensors else []
        return [*lines, f"{_tuple([self.names[i] for i in self._sizes])} = ctx.sizes"] if self._sizes else lines


def _named(value: str, name: str, taken: set[str]) -> str:
    """`value` if it is a name, else an unused name, by default that of the buffer that it is a view of."""
    if value.isidentifier():
        return value
    root = re.match(r"\w+", value)
    return unused_name(name or (root[0] if root else "saved"), taken)


def _sizes_needed(raw: RawSource, given: Mapping[str, int]) -> list[int]:
    """Indices of the sizes that the source uses, among those that it is given; it assigns each to a symbol."""
    assigned = [node for statement in raw.call for node in ast.walk(statement) if isinstance(node, ast.Assign)]
    symbols = {ast.unparse(node.value): ast.unparse(node.targets[0]) for node in assigned}
    used = uses(raw.call)
    return sorted(number for name, number in given.items() if used[symbols.get(name, "")])


def _tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else ", ".join(items)


def _unpacked(names: Sequence[str]) -> str:
    """The line that unpacks saved tensors, broken like a call if it is too long."""
    line = f"{_tuple(names)} = ctx.saved_tensors"
    return line if len(line) < 100 else "(\n    " + ",\n    ".join(names) + ",\n) = ctx.saved_tensors"


def _call(
    lowered: Lowered, outputs: Sequence[str], passed: Sequence[str], given: Mapping[str, Argument], taken: set[str]
) -> list[str]:
    """The lines of the module's `forward`: checks of the call, the call, and the reference's result."""
    own = {int(b.name): b.argument for b in lowered.bindings if b.source is Source.INPUT}
    checks = Checks(lowered, {index: given[key].expression for index, key in own.items() if key in passed}, {})
    names = {place: unused_name(size_word(lowered, own[place[1]], place[2]), taken) for place in checks.missing}
    lines = checks.lines(names)
    if lines:
        lines[:0] = [f"{name} = {given[own[i]].expression}.shape[{dim}]" for (_, i, dim), name in names.items()]
    call = f"{NAME}.apply({', '.join(given[key].expression for key in passed)})"
    tree = json.loads(lowered.outputs)
    if tree == {"tensor": 0} and len(outputs) == 1:
        return [*lines, f"return {call}"]
    results = [unused_name(name, taken) for name in outputs]
    return [*lines, f"{', '.join(results)} = {call}", f"return {result(tree, results)}"]


def _method(name: str, arguments: Sequence[str], lines: Sequence[str], *decorators: str) -> str:
    head = ["@staticmethod", *decorators, f"def {name}({', '.join(arguments)}):"]
    body = [wrapped(part, 8) for line in lines for part in line.split("\n")]
    return "\n".join([*(wrapped(line, 4) for line in head), *body])
