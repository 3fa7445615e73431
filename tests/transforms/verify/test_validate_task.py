"""Validation of tasks before the host draws their tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from corpus import load_case

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import PlannedTrial, Task, VerifySettings, plan
from kernelquarry.transforms.verify.validate_task import validate_task
from kernelquarry.transforms.verify.verify_candidate import verify_task

TASK = Task.of_candidate(load_case("honest", "softmax").candidate)


def task_with_input(**spec: Any) -> Task:
    tensor = TensorSpec("x0", **{"shape": (3, 4), "dtype": "float32", **spec})
    return replace(TASK, workloads=(Workload((tensor,), '[{"tensor": 0}]'),))


def task_with_state(shape: tuple[int, ...], dtype: str) -> Task:
    return replace(TASK, state=(StateSpec("weight", "parameter", shape, dtype, 0.0, 1.0, -1.0),))


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (task_with_input(shape=(1 << 40,)), "shape"),
        (task_with_input(shape=(1 << 20, 1 << 12)), "elements"),
        (task_with_input(shape=(-3, 4)), "shape"),
        (task_with_input(shape=("a", 4)), "shape"),
        (task_with_input(shape=(1,) * 200), "shape"),
        (task_with_input(dtype="__class__"), "dtype"),
        (task_with_input(dtype="complex64"), "complex64"),
        (task_with_input(dtype="int64", high=1 << 70), "int64 from 0"),
        (task_with_input(dtype="int32", low=-(1 << 63), high=1), "int32 from"),
        (task_with_state((1 << 26, 2), "float32"), "elements"),
        (task_with_state((3,), "__class__"), "dtype"),
        (replace(TASK, workloads=()), "0 workloads"),
        (replace(TASK, workloads=TASK.workloads * 1000), "3000 workloads"),
        (replace(TASK, guards=("__import__('os')",)), "guard"),
        (replace(TASK, dtype="__class__"), "dtype"),
        (replace(TASK, triton_code="#" * (1 << 24)), "characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_tasks_are_rejected(task: Task, problem: str) -> None:
    with pytest.raises(Rejected, match=problem) as raised:
        validate_task(task)
    assert raised.value.reason is Reason.ORACLE_FAILED


@pytest.mark.parametrize(
    ("trial", "problem"),
    [
        (PlannedTrial(9999, 0, "normal"), "workload 9999"),
        (PlannedTrial(-1, 0, "normal"), "workload -1"),
        (PlannedTrial(0, 0, "nothing"), "nothing"),
    ],
)
def test_invalid_trials_are_rejected(trial: PlannedTrial, problem: str) -> None:
    with pytest.raises(Rejected, match=problem):
        validate_task(TASK, [trial])
    with pytest.raises(Rejected, match="trials"):
        validate_task(TASK, plan(TASK) * 1000)


def test_an_honest_task_is_valid() -> None:
    validate_task(TASK, plan(TASK))


def test_tasks_are_validated_before_anything_is_drawn() -> None:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        outcome = verify_task(task_with_input(shape=(1 << 40,)), sandbox, VerifySettings(find_counterexamples=False))
    assert isinstance(outcome, Dropped) and outcome.evidence.startswith("invalid task")
