"""A forward and its backward as one `torch.autograd.Function`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Backward, Lowered, Source

from ..kernel.kernel_names import free
from ..kernel.passes import uses
from ..read.inductor_source import RawSource, parse
from ..syntax.print_code import wrapped
from .arguments import Argument, result, short_roles, size_word
from .call_guards import Checks
from .forward_body import Body, File, Words

NAME = f"{CANDIDATE_ENTRY_POINT}Function"


@dataclass(frozen=True, slots=True)
class Function:
    """The text of the class, and the lines of the module's `forward` that call it."""

    text: str
    call: list[str]
    bodies: tuple[Body, Body]


def render_function(lowered: Lowered, raw: RawSource, given: Mapping[str, Argument], words: Words) -> Function:
    """`given` and `words` are those of the module's `forward`. Raises: NotTidied."""
    (source,) = lowered.backward
    names = dict(zip(given, short_roles([argument.role for argument in given.values()]), strict=True))
    inner = {key: Argument(names[key], given[key].role, given[key].is_input) for key in given}
    file, handed = File(), _Handed(source, parse(source.inductor_code), set(names.values()))
    forward = Body(raw, inner, Words({"ctx", *names.values()}, words.sizes, handed.results), file, handed.end)
    passed: list[str] = []

    def end_backward(values: list[str]) -> list[str]:
        needed = forward.used
        pairs = [(key, value) for key, value in zip(names, values, strict=True) if key in needed or value != "None"]
        pairs.sort(key=lambda pair: not given[pair[0]].is_input)  # those of the call first, then the state
        passed.extend(key for key, _ in pairs)
        return [f"return {', '.join(value for _, value in pairs)}"]

    taken = {"ctx", *handed.names.values()}
    gradients = [free(f"{name}_grad", taken) for name in handed.outputs]
    reached: dict[str, Argument] = {}
    for binding in source.bindings:
        index, flows = int(binding.name), binding.source is Source.GRADIENT
        name = gradients[index] if flows else handed.names.get(index, binding.argument)
        reached[binding.argument] = Argument(name, name, flows)
    wanted = tuple(f"{name}_grad" for name in names.values())
    backward = Body(handed.raw, reached, Words(taken, {**words.sizes, **forward.sizes}, wanted), file, end_backward)
    text = _class(
        _method("forward", ["ctx", *(names[key] for key in passed)], forward.lines),
        _method("backward", ["ctx", *gradients], [*handed.taken_back, *backward.lines], "@once_differentiable"),
    )
    call = _call(lowered, handed.outputs, {key: given[key].expression for key in passed}, given, words)
    return Function(text, call, (forward, backward))


class _Handed:
    """What the forward hands over to the backward: the end of the one, and the beginning of the other."""

    def __init__(self, source: Backward, raw: RawSource, arguments: set[str]) -> None:
        def numbers(kind: Source) -> dict[str, int]:
            return {one.argument: int(one.name) for one in source.bindings if one.source is kind}

        self.raw = raw
        self._arguments = arguments
        self._saved = sorted(numbers(Source.SAVED).values())
        self._sizes = _sizes_needed(raw, numbers(Source.SIZE))
        self._flowing = set(numbers(Source.GRADIENT).values())
        self._count = min([*self._saved, *numbers(Source.SIZE).values()], default=None)  # of the outputs before it
        self.outputs: list[str] = []  # their names
        self.names: dict[int, str] = {}  # of what is handed over, by its place among the results

    @property
    def results(self) -> tuple[str, ...]:
        """What the forward's results are called, see `Words`."""
        return ("out",) if self._count is None else (*["out"] * self._count, "")

    def end(self, values: list[str]) -> list[str]:
        """The last lines of the forward."""
        taken = {"ctx", *self._arguments, *filter(str.isidentifier, values)}
        self.outputs = [_named(value, "out", taken) for value in values[: self._count]]
        self.names = {index: _named(values[index], "", taken) for index in [*self._saved, *self._sizes]}
        lines = [f"{name} = {value}" for name, value in zip(self.outputs, values, strict=False) if name != value]
        if self._saved:
            lines.append(f"ctx.save_for_backward({', '.join(values[index] for index in self._saved)})")
        if self._sizes:
            lines.append(f"ctx.sizes = {_tuple([values[index] for index in self._sizes])}")
        if still := [name for index, name in enumerate(self.outputs) if index not in self._flowing]:
            lines.append(f"ctx.mark_non_differentiable({', '.join(still)})")
        return [*lines, f"return {', '.join(self.outputs)}"]

    @property
    def taken_back(self) -> list[str]:
        """The first lines of the backward."""
        lines = [_unpacked([self.names[index] for index in self._saved])] if self._saved else []
        return [*lines, f"{_tuple([self.names[i] for i in self._sizes])} = ctx.sizes"] if self._sizes else lines


def _named(value: str, name: str, taken: set[str]) -> str:
    """`value` if it is a name, else a free one, by default after what it is a view of."""
    if value.isidentifier():
        return value
    root = re.match(r"\w+", value)
    return free(name or (root[0] if root else "saved"), taken)


def _sizes_needed(raw: RawSource, given: Mapping[str, int]) -> list[int]:
    """Numbers of the sizes that the source uses, of those that it is given: it has symbols for them."""
    symbols = {
        ast.unparse(node.value): ast.unparse(node.targets[0])
        for statement in raw.call
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
    }
    used = uses(raw.call)
    return sorted(number for name, number in given.items() if used[symbols.get(name, "")])


def _tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else ", ".join(items)


def _unpacked(names: Sequence[str]) -> str:
    """The line that gives saved tensors their names back, broken like a call if it is too long."""
    line = f"{_tuple(names)} = ctx.saved_tensors"
    return line if len(line) < 100 else "(\n    " + ",\n    ".join(names) + ",\n) = ctx.saved_tensors"


def _call(
    lowered: Lowered, outputs: Sequence[str], arguments: Mapping[str, str], given: Mapping[str, Argument], words: Words
) -> list[str]:
    """The lines of the module's `forward`: the checks, the call, and its results as the reference returns them."""
    taken = set(words.taken)
    lines = _check_lines(lowered, [key for key in arguments if given[key].is_input], given, taken)
    call = f"{NAME}.apply({', '.join(arguments.values())})"
    tree = json.loads(lowered.outputs)
    if tree == {"tensor": 0} and len(outputs) == 1:
        return [*lines, f"return {call}"]
    names = [free(name, taken) for name in outputs]
    return [*lines, f"{', '.join(names)} = {call}", f"return {result(tree, names)}"]


def _check_lines(lowered: Lowered, used: Sequence[str], given: Mapping[str, Argument], taken: set[str]) -> list[str]:
    """What is assumed of the call, with the sizes that it is about."""
    own = {int(b.name): b.argument for b in lowered.bindings if b.source is Source.INPUT}
    checks = Checks(lowered, {index: given[key].expression for index, key in own.items() if key in used}, {})
    names = {(i, dim): free(size_word(lowered, own[i], dim), taken) for i, dim in checks.missing}
    sizes = [f"{name} = {given[own[i]].expression}.shape[{dim}]" for (i, dim), name in names.items()]
    lines = checks.lines(names)
    return [*sizes, *lines] if lines else []


def _method(name: str, arguments: Sequence[str], lines: Sequence[str], *decorators: str) -> str:
    head = ["@staticmethod", *decorators, f"def {name}({', '.join(arguments)}):"]
    body = [wrapped(part, 8) for line in lines for part in line.split("\n")]
    return "\n".join([*(wrapped(line, 4) for line in head), *body])


def _class(forward: str, backward: str) -> str:
    docstring = '"""The forward, and the gradients that follow from what it saves."""'
    return f"class {NAME}(torch.autograd.Function):\n    {docstring}\n\n{forward}\n\n{backward}"
