"""A forward and its backward as one `torch.autograd.Function`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Lowered, Source

from .arguments import Argument, short_roles, size_word
from .body import Body, File, Words, result
from .checks import Checks
from .names import free
from .raw import RawSource, parse
from .render import wrapped

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
    file, passed = File(), list[str]()
    outputs, kept = list[str](), list[str]()  # names of the forward's results, and of what it saves
    saved = [int(binding.name) for binding in source.bindings if binding.source is Source.SAVED]
    flowing = {int(binding.name) for binding in source.bindings if binding.source is Source.GRADIENT}

    def end_forward(values: list[str]) -> list[str]:
        count = len(values) - len(saved)
        taken = {"ctx", *names.values(), *filter(str.isidentifier, values)}
        outputs.extend(_named(value, "out", taken) for value in values[:count])
        kept.extend(_named(value, "", taken) for value in values[count:])
        lines = [f"{name} = {value}" for name, value in zip(outputs, values, strict=False) if name != value]
        if values[count:]:
            lines.append(f"ctx.save_for_backward({', '.join(values[count:])})")
        if still := [name for index, name in enumerate(outputs) if index not in flowing]:
            lines.append(f"ctx.mark_non_differentiable({', '.join(still)})")
        return [*lines, f"return {', '.join(outputs)}"]

    results = (*["out"] * min(saved), "") if saved else ("out",)
    forward = Body(raw, inner, Words({"ctx", *names.values()}, words.sizes, results), file, end_forward)
    parsed = parse(source.inductor_code)

    def end_backward(values: list[str]) -> list[str]:
        needed = forward.used
        pairs = [(key, value) for key, value in zip(names, values, strict=True) if key in needed or value != "None"]
        pairs.sort(key=lambda pair: not given[pair[0]].is_input)  # those of the call first, then the state
        passed.extend(key for key, _ in pairs)
        return [f"return {', '.join(value for _, value in pairs)}"]

    taken = {"ctx", *kept}
    gradients = [free(f"{name}_grad", taken) for name in outputs]
    reached: dict[str, Argument] = {}
    for binding in source.bindings:
        index, flows = int(binding.name), binding.source is Source.GRADIENT
        name = gradients[index] if flows else kept[index - len(outputs)]
        reached[binding.argument] = Argument(name, name, flows)
    wanted = tuple(f"{name}_grad" for name in names.values())
    backward = Body(parsed, reached, Words(taken, {**words.sizes, **forward.sizes}, wanted), file, end_backward)
    if kept:
        backward.lines.insert(0, _unpacked(kept))
    text = _class(
        _method("forward", ["ctx", *(names[key] for key in passed)], forward.lines),
        _method("backward", ["ctx", *gradients], backward.lines, "@once_differentiable"),
    )
    call = _call(lowered, outputs, {key: given[key].expression for key in passed}, given, words)
    return Function(text, call, (forward, backward))


def _named(value: str, name: str, taken: set[str]) -> str:
    """`value` if it is a name, else a free one, by default after what it is a view of."""
    if value.isidentifier():
        return value
    root = re.match(r"\w+", value)
    return free(name or (root[0] if root else "saved"), taken)


def _unpacked(names: Sequence[str]) -> str:
    """The line that gives saved tensors their names back, broken like a call if it is too long."""
    if len(names) == 1:
        return f"({names[0]},) = ctx.saved_tensors"
    line = f"{', '.join(names)} = ctx.saved_tensors"
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
