"""Describes the inputs that a kernel must support, for prompts.

A module's text does not tell which sizes may vary, so a prompt that leaves them out asks for a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from kernelquarry.pipeline.schema.records import Row
from kernelquarry.transforms.workloads.axis_names import axis_word
from kernelquarry.transforms.workloads.resize import axis_sizes, free_sizes

Axis = tuple[int, int]  # index of a tensor of the call, and of its axis
_SIZE = re.compile(r"input(\d+)_(\d+)")
_AGREEMENT = re.compile(f"{_SIZE.pattern} == {_SIZE.pattern}")


def supported_inputs(row: Row, general: bool) -> str:
    """The shapes of the row's inputs; "" if the call has no tensors.

    Sizes with the same name are equal. The names are those that `tidy` gives in `forward`.

    Args:
        general: sizes that differ between the workloads have names; else all are those of the first workload.
    """
    tensors = row.workloads[0].tensors
    sizes = _named_sizes(row, general)
    shapes = [[sizes[index, axis] for axis in range(len(tensor.shape))] for index, tensor in enumerate(tensors)]
    inputs = [f"`{tensor.name}` {_tuple(shape)}" for tensor, shape in zip(tensors, shapes, strict=True)]
    if not inputs:
        return ""
    if not any(name.isidentifier() for name in sizes.values()):
        return f"inputs {', '.join(inputs)}"
    limits = [guard for guard in row.guards if not _AGREEMENT.fullmatch(guard)]
    named = [_SIZE.sub(lambda size: sizes[int(size[1]), int(size[2])], guard) for guard in limits]
    limited = f" and {', '.join(f'`{limit}`' for limit in named)}" if named else ""
    return f"inputs {', '.join(inputs)}, where names are sizes that vary{limited}"


def _named_sizes(row: Row, general: bool) -> dict[Axis, str]:
    """Axis -> a name, or a number where the size is fixed."""
    tensors, sizes = row.workloads[0].tensors, axis_sizes(row.workloads)
    free, first = set(free_sizes(row.workloads) if general else ()), _first_axes(row)
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


def _first_axes(row: Row) -> Mapping[Axis, Axis]:
    """Axis -> the first axis that must have the same size.

    A kernel's guards say so. Where there is no kernel yet, sizes of two tensors that are equal in all workloads count.
    """
    found = dict[Axis, Axis]()
    if row.triton_code:
        for guard in row.guards:
            if match := _AGREEMENT.fullmatch(guard):
                one, other, *_ = sorted([(int(match[1]), int(match[2])), (int(match[3]), int(match[4]))])
                found[other] = found.get(one, one)
        return found
    sizes = axis_sizes(row.workloads)
    for axis, size in sizes.items():
        same = [each for each, other in sizes.items() if other == size and each[0] < axis[0]]
        found |= {axis: same[0]} if same else {}
    return found


def _tuple(shape: list[str]) -> str:
    return f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
