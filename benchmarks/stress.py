"""Inputs that verification does not draw: other values, weights and sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernelquarry.pipeline.sandbox.inputs import DISTRIBUTIONS, draw_inputs, draw_state
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.verify.task import STATE_SETS, PlannedTrial, Task
from kernelquarry.transforms.workloads.resize import free_sizes, resized

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST = 1 << 18  # elements of an input; the interpreter takes minutes for more
_FIRST_SEED = 1000  # above the seeds of a verdict
_BATCH = 6  # trials per guest

Change = Callable[["Tensor"], "Tensor"]


def _equal(value: Tensor) -> Tensor:
    return value.reshape(-1)[:1].expand(value.numel()).reshape(value.shape)


def _sparse(value: Tensor) -> Tensor:
    return value * (value > 1.2)


def _one_hot(value: Tensor) -> Tensor:
    """1 at the largest value of each row along the last axis, else 0."""
    return (value == value.amax(dim=-1, keepdim=True)).to(value.dtype) if value.ndim else value


def _ascending(value: Tensor) -> Tensor:
    return value.reshape(-1).sort().values.reshape(value.shape)


def _special(number: float) -> Change:
    """Set the last element, which a mask that is one too short would miss."""

    def change(value: Tensor) -> Tensor:
        changed = value.clone()
        changed.reshape(-1)[-1:] = number
        return changed

    return change


CHANGES: Mapping[str, Change] = {
    "negated": lambda value: -value,
    "shifted down": lambda value: value - 32,
    "small": lambda value: value * 2.0**-10,
    "tiny": lambda value: value * 2.0**-40,
    "large": lambda value: value * 2.0**10,
    "huge": lambda value: value * 2.0**40,
    "zeros": lambda value: value * 0,
    "equal": _equal,
    "whole": lambda value: value.round(),
    "sparse": _sparse,
    "one hot": _one_hot,
    "ascending": _ascending,
    "descending": lambda value: -_ascending(value),
    "positive": lambda value: value.abs(),
    "one NaN": _special(float("nan")),
    "one infinity": _special(float("inf")),
    "one outlier": _special(1e6),
}
_STATES: Mapping[str, Change] = {
    "drawn": lambda value: value,
    "negated": lambda value: -value,
    "large": lambda value: value * 8,
    "small": lambda value: value * 2.0**-10,
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials for one guest, with changes of the drawn inputs and weights."""

    task: Task
    trials: tuple[PlannedTrial, ...]
    changes: tuple[str, ...]  # of each trial's inputs; "" for none
    state: str  # key of `_STATES`

    def tensors(self) -> Tensors:
        """Tensors of all trials, with the names that `verify.task.draw` uses."""
        tensors: Tensors = {}
        calls = self.task.calls
        for index, (trial, change) in enumerate(zip(self.trials, self.changes, strict=True)):
            workload = calls[trial.workload]
            for place, value in enumerate(draw_inputs(workload, trial.distribution, trial.seed)):
                tensors[f"input.{index}.{place}"] = _changed(value, change, workload.tensors[place])
        kinds = {spec.name: spec.kind for spec in self.task.state}
        for key in range(STATE_SETS):
            for name, value in draw_state(self.task.state, self.trials[0].seed + key).items():
                is_changed = kinds[name] == "parameter" or self.state != "negated"  # a buffer may be a variance
                tensors[f"state.{key}.{name}"] = _STATES[self.state](value) if is_changed else value
        return tensors

    def describe(self, index: int) -> str:
        """Text that describes a trial."""
        trial = self.trials[index]
        shapes = ", ".join(str(list(spec.shape)) for spec in self.task.calls[trial.workload].tensors)
        return f"inputs {shapes}, {self.changes[index] or trial.distribution}; weights {self.state}; seed {trial.seed}"

    def alone(self, index: int) -> Batch:
        return replace(self, trials=self.trials[index : index + 1], changes=self.changes[index : index + 1])


def _changed(value: Tensor, change: str, spec: TensorSpec) -> Tensor:
    """Apply a change; integers stay in their range, so some changes set them to one end or sort them."""
    if not change:
        return value
    if value.is_floating_point():
        return CHANGES[change](value).contiguous()
    if value.numel() and change in ("zeros", "equal", "negated"):
        end = {"zeros": value.amin(), "equal": value.reshape(-1)[0], "negated": value.amax()}[change]
        return end.expand(value.shape).contiguous()
    if change == "ascending" and spec.dtype != "bool":
        return _ascending(value).contiguous()
    return value


def batches(task: Task) -> Iterator[Batch]:
    """Batches, those most likely to distinguish two kernels first. A task of one shape keeps its shape."""
    own = range(len(task.workloads) if task.shape_general else 1)
    seed = _FIRST_SEED
    for workload in own:
        yield _batch(task, workload, seed, [(name, "") for name in DISTRIBUTIONS])
        seed += 100
    if task.shape_general:
        for other in other_workloads(task):
            yield _batch(replace(task, workloads=(other,)), 0, seed, [("normal", ""), ("heavy_tailed", "")])
            seed += 100
    for workload in own:
        for start in range(0, len(CHANGES), _BATCH):
            yield _batch(task, workload, seed, [("normal", name) for name in list(CHANGES)[start : start + _BATCH]])
            seed += 100
    for state in list(_STATES)[1:]:
        yield replace(_batch(task, 0, seed, [("normal", ""), ("shifted", "")]), state=state)
        seed += 100


def _batch(task: Task, workload: int, seed: int, draws: list[tuple[str, str]]) -> Batch:
    trials = tuple(PlannedTrial(workload, seed + index, name) for index, (name, _) in enumerate(draws))
    return Batch(task, trials, tuple(change for _, change in draws), "drawn")


def other_workloads(task: Task) -> Iterator[Workload]:
    """Workloads with other free sizes: larger ones, powers of two, and 1."""
    free = free_sizes(task.workloads)
    settings = [{size: max(size) * 3 + 1 for size in free}, dict.fromkeys(free, 16), dict.fromkeys(free, 2)]
    settings += [{size: max(size) * 8 + 3} for size in free]
    settings += [{size: n} for n in (128, 1) for size in free]
    seen = set(task.workloads)
    for setting in settings:
        workload = resized(task.workloads, setting)
        if workload not in seen and all(math.prod(spec.shape) <= _LARGEST for spec in workload.tensors):
            seen.add(workload)
            yield workload
