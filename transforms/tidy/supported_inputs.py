"""Describes the inputs that a kernel must support, and what the module makes of them, for prompts.

The workloads of a row decide which sizes vary, and the module's text does not show them. Without them in the prompt, a
model has to guess the shapes that `ModelNew.forward` must accept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.records import CallShape, Workload
from kernelquarry.transforms.workloads.axis_names import axis_word
from kernelquarry.transforms.workloads.guards import parse_guard, same_sizes
from kernelquarry.transforms.workloads.resize import axis_sizes, free_sizes
from kernelquarry.transforms.workloads.size_expressions import size_expression

from .syntax.ast_tools import tuple_text

Axis = tuple[int, int]  # index of a tensor of the call, and of its axis
_SIZE = re.compile(r"input(\d+)_(\d+)")  # in guards
# A guest claims shapes, and nothing in a module is an instruction to a model.
_CALL = re.compile(r"[\w.\[\]]{1,80}")
_MOST = 24
_MOST_AXES = 8
_LONGEST_SIZE = 40  # characters of an expression that others may contain
_MOST_SIZES = 32  # that other sizes may follow from
_DTYPES = frozenset("bool float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 complex64".split())


def supported_inputs(workloads: Sequence[Workload], guards: Sequence[str] | None, general: bool) -> str:
    """The shapes of a module's inputs; "" if the call has no tensors.

    Sizes with the same name are equal. The names are those that `tidy` gives in `forward`.

    Args:
        guards: of the compiler's kernel, which say which axes have the same size; None: axes of two tensors do if
            their sizes are equal in all workloads.
        general: sizes that differ between the workloads have names; else all are those of the first workload.
    """
    tensors = workloads[0].tensors
    sizes = _named_sizes(workloads, guards, general)
    shapes = [[sizes[index, axis] for axis in range(len(tensor.shape))] for index, tensor in enumerate(tensors)]
    inputs = [f"`{tensor.name}` {tuple_text(shape)}" for tensor, shape in zip(tensors, shapes, strict=True)]
    if not inputs:
        return ""
    if not any(name.isidentifier() for name in sizes.values()):
        return f"inputs {', '.join(inputs)}"
    limits = [guard for guard in guards or () if not same_sizes([parse_guard(guard)])]
    named = [_SIZE.sub(lambda size: sizes[int(size[1]), int(size[2])], guard) for guard in limits]
    limited = f" and {', '.join(f'`{limit}`' for limit in named)}" if named else ""
    return f"inputs {', '.join(inputs)}, where names are sizes that vary{limited}"


def made_shapes(
    shapes: Sequence[CallShape], workloads: Sequence[Workload], guards: Sequence[str] | None, general: bool
) -> str:
    """The shapes of calls and results: "With these sizes, `self.conv` gives (batch, 8), the result is (batch,)."

    The arguments are those of `supported_inputs`. If not all shapes follow from the sizes that vary, the shapes are
    those of the first workload: "With `get_inputs()`, `self.conv` gives (2, 8)."
    """
    known = [each for each in shapes if each.dtype in _DTYPES and each.is_within(_MOST_AXES)]
    calls = [each for each in known if _CALL.fullmatch(each.call)][:_MOST]
    results = [each for each in known if not each.call][:_MOST]
    every = [*calls, *results]
    named = _in_names(every, _varying(workloads, guards)) if general else []
    texts = named or [[*map(str, each.shape)] for each in every]
    made = [_shape(text, each.dtype) for text, each in zip(texts, every, strict=True)]
    parts = [f"`{each.call}` gives {shape}" for each, shape in zip(calls, made, strict=False)]
    if results:
        parts.append(f"the result{'s are' if len(results) > 1 else ' is'} {', '.join(made[len(calls) :])}")
    return f"With {'these sizes' if named else '`get_inputs()`'}, {', '.join(parts)}." if parts else ""


@dataclass(frozen=True, slots=True)
class _Size:
    """A size that varies."""

    text: str  # a name, or an expression of names
    behind: int  # axes from its axis to the end of the shape
    sizes: tuple[int, ...]  # in each workload


def _varying(workloads: Sequence[Workload], guards: Sequence[str] | None) -> list[_Size]:
    """The sizes of the inputs that vary."""
    names, tensors = _named_sizes(workloads, guards, general=True), workloads[0].tensors
    return [
        _Size(names[tensor, axis], len(tensors[tensor].shape) - axis, sizes)
        for (tensor, axis), sizes in axis_sizes(workloads).items()
        if names[tensor, axis].isidentifier()
    ]


def _in_names(shapes: Sequence[CallShape], varying: list[_Size]) -> list[list[str]]:
    """The sizes of each shape by those that vary; none if no size varies, or if one does not follow from them."""
    found = []
    for each in shapes if varying else ():
        found.append(_sizes(each, varying))
        if "" in found[-1]:
            return []
        varying = _with_sizes(varying, each, found[-1])
    return found


def _sizes(made: CallShape, varying: Sequence[_Size]) -> list[str]:
    """The sizes of a shape by those that vary; "" for one that does not follow from them."""
    shapes = [made.shape, *made.further]
    if len({*map(len, shapes)}) > 1 or any(len(each.sizes) != len(shapes) for each in varying):
        return [""]
    axes = enumerate(zip(*shapes, strict=True))
    return [size_expression(sizes, _near(varying, len(made.shape) - axis)) for axis, sizes in axes]


def _near(varying: Sequence[_Size], behind: int) -> dict[str, tuple[int, ...]]:
    """The sizes that an axis may follow from, nearest first, counted from the last axis.

    Of several with the same sizes in all workloads, the nearest is meant; none of them if two are as near.
    """
    ordered = sorted(varying, key=lambda each: abs(each.behind - behind))
    texts = dict[tuple[tuple[int, ...], int], set[str]]()  # by sizes and distance
    for each in ordered:
        texts.setdefault((each.sizes, abs(each.behind - behind)), set()).add(each.text)
    unclear = {text for found in texts.values() if len(found) > 1 for text in found}
    return {each.text: each.sizes for each in ordered if each.text not in unclear}


def _with_sizes(varying: list[_Size], made: CallShape, texts: Sequence[str]) -> list[_Size]:
    """Add the sizes of a call that follow from known ones, so that sizes of later calls can refer to them."""
    known = {each.text for each in varying}
    found = [
        _Size(text, len(texts) - axis, tuple(sizes))
        for axis, (text, *sizes) in enumerate(zip(texts, made.shape, *made.further, strict=False))
        if 0 < len(text) <= _LONGEST_SIZE and not text.isdigit() and text not in known
    ]
    return [*varying, *found][:_MOST_SIZES]


def _shape(sizes: Sequence[str], dtype: str) -> str:
    text = tuple_text(sizes) if sizes else "a scalar"
    return text if dtype == "float32" else f"{text} of {dtype}"


def _named_sizes(workloads: Sequence[Workload], guards: Sequence[str] | None, general: bool) -> dict[Axis, str]:
    """Axis -> a name, or a number where the size is fixed."""
    tensors, sizes = workloads[0].tensors, axis_sizes(workloads)
    free, first = set(free_sizes(workloads) if general else ()), _first_axes(sizes, guards)
    named, used = dict[Axis, str](), Counter[str]()
    for axis, size in sizes.items():
        if size not in free:
            named[axis] = str(size[0])
        elif axis in first and first[axis] in named:
            named[axis] = named[first[axis]]
        else:
            word = axis_word(len(tensors[axis[0]].shape), axis[1])
            used[word] += 1
            named[axis] = word if used[word] == 1 else f"{word}_{used[word]}"
    return named


def _first_axes(sizes: Mapping[Axis, tuple[int, ...]], guards: Sequence[str] | None) -> Mapping[Axis, Axis]:
    """Axis -> the first axis that must have the same size."""
    if guards is not None:
        found = same_sizes(parse_guard(guard) for guard in guards)
        return {(tensor, axis): first[1:] for (_, tensor, axis), first in found.items()}
    equal = dict[Axis, Axis]()
    for axis, size in sizes.items():
        same = [each for each, other in sizes.items() if other == size and each[0] < axis[0]]
        equal |= {axis: same[0]} if same else {}
    return equal
