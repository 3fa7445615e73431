"""Validate a task before the host draws its tensors.

Anyone may have written the row. The host draws its trials before any guest starts, so no guest's limits protect it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kernelquarry.pipeline.sandbox.inputs import DISTRIBUTIONS, NAMED
from kernelquarry.pipeline.sandbox.jobs.calls import STATE_SETS
from kernelquarry.pipeline.sandbox.protocol import MAX_DIMENSIONS, MAX_TENSORS
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import TensorSpec
from kernelquarry.transforms.workloads.guards import parse_guard

from .evidence import Rejected
from .task import PlannedTrial, Task, source_values

_MAX_ELEMENTS = 1 << 27  # of all trials and weights; the host needs up to 60 bytes to draw one
_MAX_SOURCE = 1 << 23  # characters
_MAX_WORKLOADS = 64
_INPUT_DTYPES = frozenset(
    "bfloat16 bool float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 uint16 uint32 uint64 "
    "uint8".split()
)
_TASK_DTYPES = ("float32", "float16", "bfloat16")


def validate_task(task: Task, trials: Sequence[PlannedTrial] = ()) -> None:
    """Raises: Rejected: the task or one of its `trials` is malformed, or exceeds a limit."""
    if problem := next(_problems(task, trials), ""):
        raise Rejected(Reason.ORACLE_FAILED, f"invalid task: {problem}")


def _problems(task: Task, trials: Sequence[PlannedTrial]) -> Iterator[str]:
    if not 1 <= len(task.workloads) <= _MAX_WORKLOADS:
        yield f"{len(task.workloads)} workloads"
    if max(len(task.python_code), len(task.triton_code), len(task.init_args)) > _MAX_SOURCE:
        yield f"a source of more than {_MAX_SOURCE} characters"
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
        if spec.dtype not in _INPUT_DTYPES or not _is_range(spec):
            yield f"{spec.dtype} from {spec.low} to {spec.high}"
    calls = task.calls
    for trial in trials:
        if trial.workload not in range(len(calls)):
            yield f"a trial of workload {trial.workload}"
        if not (source_values(task) if trial.distribution == NAMED else trial.distribution in DISTRIBUTIONS):
            yield f"a trial of {trial.distribution!r:.40}"
    drawn = [spec for trial in trials for spec in calls[trial.workload].tensors]
    elements = sum(math.prod(spec.shape) for spec in (*specs, *drawn))
    elements += STATE_SETS * sum(math.prod(spec.shape) for spec in task.state)
    if elements > _MAX_ELEMENTS or len(drawn) > MAX_TENSORS:
        yield f"{elements} elements in {len(drawn)} tensors of all trials"


def _is_size(size: Any) -> bool:
    return type(size) is int and 0 <= size <= _MAX_ELEMENTS


def _is_range(spec: TensorSpec) -> bool:
    """True if floats have a range, and an integer dtype contains its range, of under 2**63 values."""
    dtype = getattr(torch, spec.dtype)
    if dtype == torch.bool:
        return True
    if dtype.is_floating_point:
        return spec.low <= spec.high
    limits = np.iinfo(spec.dtype)
    return bool(limits.min <= spec.low and spec.high <= limits.max + 1 and spec.high - spec.low < 1 << 63)
