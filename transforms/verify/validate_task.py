"""What a task may ask the host to draw. A row is a file that anyone may have written, and its trials are drawn before
any guest, whose limits hold for itself, is asked for anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kernelquarry.pipeline.sandbox.inputs import DISTRIBUTIONS, NAMED
from kernelquarry.pipeline.sandbox.protocol import MAX_DIMENSIONS, MAX_TENSORS
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import TensorSpec
from kernelquarry.transforms.workloads.guards import parse_guard

from .evidence import Rejected
from .task import STATE_SETS, PlannedTrial, Task, values_named

_MOST = 1 << 27  # elements of all trials and of the weights; drawing one takes the host up to 60 bytes for a while
_MOST_TEXT = 1 << 23  # characters of a source: it goes to guests, and is parsed
_MOST_WORKLOADS = 64
_DRAWN = frozenset(
    "bfloat16 bool float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 uint16 uint32 uint64 "
    "uint8".split()
)
_TASK_DTYPES = ("float32", "float16", "bfloat16")


def validate_task(task: Task, trials: Sequence[PlannedTrial] = ()) -> None:
    """Raises: Rejected: the task, or one of its `trials`, asks for what cannot be drawn, or for too much."""
    if problem := next(_problems(task, trials), ""):
        raise Rejected(Reason.ORACLE_FAILED, f"not a task: {problem}")


def _problems(task: Task, trials: Sequence[PlannedTrial]) -> Iterator[str]:
    if not 1 <= len(task.workloads) <= _MOST_WORKLOADS:
        yield f"{len(task.workloads)} workloads"
    if max(len(task.python_code), len(task.triton_code), len(task.init_args)) > _MOST_TEXT:
        yield f"a source of more than {_MOST_TEXT} characters"
    if task.dtype not in _TASK_DTYPES:
        yield f"dtype {task.dtype!r:.40}"
    for guard in task.guards:
        try:
            parse_guard(guard)
        except ValueError as error:
            yield str(error)
    specs = [spec for workload in task.workloads for spec in workload.tensors]
    if len(specs) + len(task.state) > MAX_TENSORS:
        yield f"{len(specs) + len(task.state)} tensors"
    kinds = [(each.dtype, each.shape) for each in specs] + [(each.dtype, each.shape) for each in task.state]
    for dtype, shape in kinds:
        if not isinstance(getattr(torch, dtype, None), torch.dtype):
            yield f"dtype {dtype!r:.40}"
        if len(shape) > MAX_DIMENSIONS or not all(map(_is_size, shape)):
            yield f"shape {str(shape)[:80]}"
    for spec in specs:
        if spec.dtype not in _DRAWN or not _is_range(spec):
            yield f"{spec.dtype} from {spec.low} to {spec.high}"
    calls = task.calls
    for trial in trials:
        if trial.workload not in range(len(calls)):
            yield f"a trial of workload {trial.workload}"
        if not (values_named(task) if trial.distribution == NAMED else trial.distribution in DISTRIBUTIONS):
            yield f"a trial of {trial.distribution!r:.40}"
    drawn = [spec for trial in trials for spec in calls[trial.workload].tensors]
    elements = sum(math.prod(spec.shape) for spec in (*specs, *drawn))
    elements += STATE_SETS * sum(math.prod(spec.shape) for spec in task.state)
    if elements > _MOST or len(drawn) > MAX_TENSORS:
        yield f"{elements} elements in {len(drawn)} tensors of all trials"


def _is_size(size: Any) -> bool:
    return type(size) is int and 0 <= size <= _MOST


def _is_range(spec: TensorSpec) -> bool:
    """Whether there are as many integers, and the dtype has them."""
    dtype = getattr(torch, spec.dtype)
    if dtype.is_floating_point or dtype == torch.bool:
        return True
    held = np.iinfo(spec.dtype)
    return bool(held.min <= spec.low and spec.high <= held.max + 1 and spec.high - spec.low < 1 << 63)
