"""What a row may ask the host to draw, before any guest has limits."""

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


def asking(**spec: Any) -> Task:
    tensor = TensorSpec("x0", **{"shape": (3, 4), "dtype": "float32", **spec})
    return replace(TASK, workloads=(Workload((tensor,), '[{"tensor": 0}]'),))


def holding(shape: tuple[int, ...], dtype: str) -> Task:
    return replace(TASK, state=(StateSpec("weight", "parameter", shape, dtype, 0.0, 1.0, -1.0),))


@pytest.mark.parametrize(
    ("task", "found"),
    [
        (asking(shape=(1 << 40,)), "shape"),
        (asking(shape=(1 << 20, 1 << 12)), "elements"),
        (asking(shape=(-3, 4)), "shape"),
        (asking(shape=("a", 4)), "shape"),
        (asking(shape=(1,) * 200), "shape"),
        (asking(dtype="__class__"), "dtype"),
        (asking(dtype="complex64"), "complex64"),
        (asking(dtype="int64", high=1 << 70), "int64 from 0"),
        (asking(dtype="int32", low=-(1 << 63), high=1), "int32 from"),
        (holding((1 << 26, 2), "float32"), "elements"),
        (holding((3,), "__class__"), "dtype"),
        (replace(TASK, workloads=()), "0 workloads"),
        (replace(TASK, workloads=TASK.workloads * 1000), "3000 workloads"),
        (replace(TASK, guards=("__import__('os')",)), "guard"),
        (replace(TASK, dtype="__class__"), "dtype"),
        (replace(TASK, triton_code="#" * (1 << 24)), "characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_row_may_ask(task: Task, found: str) -> None:
    with pytest.raises(Rejected, match=found) as raised:
        validate_task(task)
    assert raised.value.reason is Reason.ORACLE_FAILED


@pytest.mark.parametrize(
    ("trial", "found"),
    [
        (PlannedTrial(9999, 0, "normal"), "workload 9999"),
        (PlannedTrial(-1, 0, "normal"), "workload -1"),
        (PlannedTrial(0, 0, "nothing"), "nothing"),
    ],
)
def test_what_no_trial_may_ask(trial: PlannedTrial, found: str) -> None:
    with pytest.raises(Rejected, match=found):
        validate_task(TASK, [trial])
    with pytest.raises(Rejected, match="trials"):
        validate_task(TASK, plan(TASK) * 1000)


def test_what_an_honest_row_asks() -> None:
    validate_task(TASK, plan(TASK))


def test_it_is_asked_before_anything_is_drawn() -> None:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        found = verify_task(asking(shape=(1 << 40,)), sandbox, VerifySettings(find_counterexamples=False))
    assert isinstance(found, Dropped) and found.evidence.startswith("not a task")
