"""The plan of calls beyond the trials: kinds of values crossed with kinds of sizes, each a call of a model's candidate.

Every call is one of a fresh module, interpreted. Calls at other sizes also rotate through the order in which programs
run and what masked loads give, since a GPU promises neither.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle

from kernelquarry.pipeline.sandbox.inputs import ECHOED, ENDS, MASKED, PADDED, is_redrawn
from kernelquarry.pipeline.sandbox.jobs.calls import CONSTRUCTOR
from kernelquarry.pipeline.schema.records import Workload
from kernelquarry.transforms.workloads.resize import (
    ONE_MORE,
    WHOLE_BLOCKS,
    at_numbers,
    crowded,
    each_as_in,
    exceed_numel,
    free_sizes,
    in_blocks,
    in_largest_blocks,
    lengthened,
    non_square,
    oblong,
    one_long_row,
    paired,
    set_each,
    unpredictable,
)

from .source_constants import SourceConstants, extents
from .task import FAR, FLIPPED, Task

_AT_CONSTANTS = 2  # calls at sizes that the sources name
# Modules whose inputs may hold -inf or labels that stand for none: others give NaN, and kernels need not agree.
_MASKABLE = re.compile(r"softmax|mask|inf\b|ignore_index|attention")
_PADDABLE = re.compile(r"mask|inf\b")  # those that mention them; a softmax alone may take each row's first as a number
_ROUNDS = re.compile(r"\.(round|floor|ceil|trunc|frac|fmod|remainder|floor_divide)\(|rounding_mode|%")
_CONVERTS = re.compile(r"\.(long|int|short|char|byte|to|type)\(")  # to a dtype that may hold no large number
_SUMS_UP = re.compile(r"cumsum\(")
_FEW = (5, 6, 7)  # sizes that are not broadcast, nor are their halves
_ROWS = 16  # at least as many as kinds of rows
_FEW_ROWS, _MORE_ROWS = (4, 5, 6, 7), (14, 15, 16)  # with long rows of odd length; others have even ones
_MOST_ROWS = 1 << 12  # of drawn kinds
_MOST_LEVEL = 1 << 18  # elements of long calls of one magnitude, next to sizes that are not free
_MOST_OF_LAST = 9 << 15  # elements of a call with several of the largest blocks
_LEVEL_SIZES = 2  # the last ones, whose long calls of one magnitude are made
_SHORT = 4  # for sizes other than a long one; the halves of 3 would be 2 and 1, which is broadcast
# Of the calls at other sizes, in turn: programs in three orders, masked elements as poison and as zeros.
_CONDITIONS = (("reverse",), ("random",), ("zero_masked",))
_OF_MANY_PROGRAMS = ("random",)  # in reverse, tens of thousands of programs can take half a second


@dataclass(frozen=True, slots=True)
class FurtherCall:
    """A call beyond the trials."""

    workload: Workload
    distribution: str = "normal"
    weights: str = ""  # set of weights; "": as a trial
    one_tensor: bool = False  # inputs of one shape are one tensor, as in self-attention
    perturbations: tuple[str, ...] = ()
    resized: bool = False  # to other sizes than those of the workloads, which a candidate may refuse
    requires: Workload | None = None  # a workload of another call, on which the reference must run
    otherwise: FurtherCall | None = None  # to be made if the reference decides nothing on this call


def further_calls(task: Task) -> list[FurtherCall]:
    """The plan: the first workload as in the first trial, other weights, inputs that are one tensor, other sizes.

    | sizes | values |
    |---|---|
    | each free size 1, and 5, 6, 7 or a constant | normal; once `small`, `echoed`; if apt `beyond`, `huge`, `ends` |
    | constants of the sources | every kind along rows |
    | drawn, no two alike, images not square | normal; every kind along rows |
    | drawn multiples of 128 | every kind along columns |
    | all the same power of two | runs of -inf, labels to be ignored; without a mask, every kind along rows |
    | each free size drawn beyond a thousand, images oblong | every kind along columns; along rows, of one magnitude |
    | each free size three times a block | kinds along rows, of one magnitude; runs of -inf, or without a mask normal |
    | each two free sizes beyond 512 | normal |
    | each free size as in the file's own call | normal |
    | each free size above 65,536, columns above 200,000, the others 2 | normal; of few rows, every kind along rows |
    | one row of three large blocks; one of 4,097 columns | normal; the last one the largest |
    | more elements than a constant of the sources | normal |
    """
    first = task.workloads[0]
    calls = [FurtherCall(first)]
    if not task.training and any(map(is_redrawn, task.state)):
        calls += [FurtherCall(first, weights=weights) for weights in (CONSTRUCTOR, FAR)]
        calls.append(FurtherCall(first, "assorted", weights=FLIPPED))
    shapes = [(spec.shape, spec.dtype, spec.low, spec.high) for spec in first.tensors]
    if len(set(shapes)) < len(shapes):
        calls.append(FurtherCall(first, one_tensor=True, perturbations=("alike",)))
    if task.shape_general:
        conditions = cycle(_CONDITIONS)
        calls += [_under(call, call.perturbations or next(conditions)) for call in _at_other_sizes(task)]
    return calls


def _at_other_sizes(task: Task) -> Iterator[FurtherCall]:
    own, draws = task.workloads, random.Random(task.first_seed)
    shares = [draws.random() for _ in range(1 + len(free_sizes(own)))]
    constants = SourceConstants(task.triton_code, task.python_code)
    # A size of 1 in place of one that must equal another is broadcast, which a kernel need not support.
    few_sizes = set_each(own, draws.choice(constants.few or _FEW))
    for number, (few, one) in enumerate(zip(few_sizes, set_each(own), strict=True)):
        yield FurtherCall(few)
        if not number:
            yield FurtherCall(few, "small")
            yield FurtherCall(few, ECHOED)
            if _ROUNDS.search(task.reference_code) and not _CONVERTS.search(task.reference_code):
                yield FurtherCall(few, "beyond")
            if task.is_half:
                yield FurtherCall(few, "huge")
            if any(spec.low < spec.high and "float" in spec.dtype for spec in few.tensors):
                yield FurtherCall(few, ENDS)
        yield FurtherCall(one, requires=few)
    for call in at_numbers(own, constants.sizes, _AT_CONSTANTS, _SHORT, constants.limits):
        yield FurtherCall(call, "assorted")
    text = f"{task.reference_code}\n{task.init_args}"
    masked = PADDED if _PADDABLE.search(text) else MASKED if _MASKABLE.search(text) else ""
    kinds = (("normal", "assorted"), ("columns",), (masked or "assorted",))
    for number, (call, distributions) in enumerate(zip(unpredictable(own, shares[1:]), kinds, strict=False)):
        image = None if number else non_square(own, call, upright=shares[0] < 0.5)
        for distribution in distributions:
            plain = FurtherCall(call, distribution)
            yield FurtherCall(image, distribution, otherwise=plain) if image else plain
    few_rows = lengthened(own, shares[0], draws.choice(_FEW_ROWS))
    more_rows = lengthened(own, shares[-1], others=draws.choice(_MORE_ROWS), elements=_MOST_LEVEL)
    images = oblong(own, shares[0])
    alone = dict(zip(free_sizes(own), few_sizes, strict=True))
    for place, (size, call) in enumerate(few_rows.items()):
        other = FurtherCall(more_rows[size], "columns") if size in more_rows else None
        yield FurtherCall(call, "columns", otherwise=other)
        if place < _LEVEL_SIZES:
            yield FurtherCall(more_rows.get(size, call), "level")
            for image in images.get(size, []):
                yield FurtherCall(image, "level", requires=alone[size])
    for call in in_blocks(own, _ROWS):
        yield FurtherCall(call, "level")
    longest, shorter = (in_largest_blocks(own, _MOST_OF_LAST // part, fewest) for part, fewest in ((1, 1), (4, 2)))
    for call in in_blocks(own, _SHORT):
        yield FurtherCall(call, masked or "normal")
    for size, call in longest.items():
        # Of a module whose outputs are larger than its inputs, a smaller call.
        other = FurtherCall(shorter[size]) if size in shorter else None
        yield FurtherCall(call, otherwise=other, requires=alone[size])
    for call in paired(own, shares[0], _SHORT):
        yield FurtherCall(call)
    for call in each_as_in(own, task.given, _SHORT) if task.given else ():
        yield FurtherCall(call)
    for columns, distribution in ((WHOLE_BLOCKS, "normal"), (ONE_MORE, "ending")):
        for size, call in one_long_row(own, columns).items():
            if size in few_rows:
                yield FurtherCall(call, distribution, requires=few_rows[size])
    for call in crowded(own):
        # Of tens of thousands of rows of large numbers, or of their running sums, one exceeds its tolerance by chance.
        is_many = math.prod(call.tensors[0].shape[:-1]) > _MOST_ROWS or _SUMS_UP.search(task.reference_code)
        yield FurtherCall(call, "normal" if is_many else "assorted", perturbations=_OF_MANY_PROGRAMS)
    for call in exceed_numel(own, (*constants.sizes, *extents(task.triton_code)), _AT_CONSTANTS):
        yield FurtherCall(call)


def _under(call: FurtherCall, conditions: tuple[str, ...]) -> FurtherCall:
    """The call and its alternatives with perturbations of programs and memory."""
    otherwise = _under(call.otherwise, conditions) if call.otherwise else None
    return replace(call, perturbations=conditions, resized=True, otherwise=otherwise)
