"""Dry runs of large calls. The guest and the executor are doubles; evil cases test the guest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelquarry.pipeline.sandbox import Job, Report, Status
from kernelquarry.pipeline.sandbox.executor.service import Execution, ExecutionStatus, GpuDescription
from kernelquarry.pipeline.sandbox.jobs.dry_run import DryPath, DryRunReply
from kernelquarry.pipeline.sandbox.jobs.trace import TraceReply
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.larger_calls import check_larger_calls, run_large
from kernelquarry.transforms.verify.task import Task, VerifySettings, draw, plan


def of_rows(rows: int) -> Workload:
    return Workload((TensorSpec("x", (rows, 8), "float32"),), '[{"tensor":0}]')


TASK = Task(
    id="mod_x", python_code="", triton_code="", init_args="[]", workloads=(of_rows(2), of_rows(3), of_rows(5)),
    state=(StateSpec("weight", "parameter", (8,), "float32", 0.0, 1.0, -1.0),),
    kernels=(), purity=Purity.PURE, extern_ops=(), shape_general=True, by_model=True,
)  # fmt: skip
SETTINGS = VerifySettings()


class Double:
    """A sandbox whose guest replies the same to every job, and whose GPU ends a job one way."""

    description = GpuDescription("a double", "sm_90", "1")

    def __init__(self, reply: Any, status: ExecutionStatus = ExecutionStatus.DONE) -> None:
        self.report = Report(Status.OK, reply, {"binary.x": torch.zeros(1)}, "", "", "", 0.0, 0.0, 0.0)
        self.status, self.requests = status, list[tuple[Any, Any]]()

    @property
    def gpus(self) -> Double:
        return self

    def run(self, request: Any, tensors: Any = None, wall_s: float = 0) -> Any:
        if isinstance(request, Job):
            self.job = request
            return self.report
        self.requests.append((request, tensors))
        return Execution(self.status, {}, {}, "why", 0.0)


def reference(task: Task = TASK) -> Any:
    """The attributes of a reference without its outputs."""
    trials = plan(task)
    calls = [trial.workload for trial in trials]
    first = [index for index, call in enumerate(calls) if call not in calls[:index]]
    tensors = draw(task, trials)
    return SimpleNamespace(task=task, trials=trials, tensors=tensors, undrawn={}, first_trials_of_calls=lambda: first)


LAUNCH = "a[2, 1, 1](x=float32(input 0, [2, 8], [8, 1], 0), n=16, num_warps=4)"


def reply_to(job: Job, last: list[str] | None, raised: str, flag: str) -> DryRunReply:
    """Reply with one path for all calls; the first call `raised`, and the last has the path `last` and the `flag`."""
    calls = job.request.calls
    largest = max(call.inputs[0].shape[0] for call in calls)
    assert largest * 8 > 1 << 24 and calls[-1].inputs[0].shape[0] * 8 > 1 << 23, "the last calls are large"
    paths: list[list[str] | None] = [["launch a"]] * (len(calls) - 1)
    paths[0] = None if raised else paths[0]
    found = [DryPath(path, (LAUNCH,), raised) for path in paths]
    return DryRunReply((*found, DryPath(last, (LAUNCH.replace("n=16", flag),))))


def checked(last: list[str] | None, raised: str = "", flag: str = "n=16", ran: Sequence[str] = ()) -> str:
    sandbox = Double(DryRunReply(()))
    with pytest.raises(Rejected, match="0 paths of"):
        check_larger_calls(reference(), sandbox, SETTINGS)  # type: ignore[arg-type]
    reply = reply_to(sandbox.job, last, raised, flag)
    dry = check_larger_calls(reference(), Double(reply), SETTINGS)  # type: ignore[arg-type]
    return dry.unverified(ran)


def test_the_path_of_the_trials_passes() -> None:
    assert not checked(["launch a"])


def test_a_large_call_may_raise() -> None:
    assert not checked(None)


@pytest.mark.parametrize(
    ("last", "divergence"),
    [
        (["launch a", "zero_"], "8]: 2 steps in place of 1, zero_ more"),
        ([], "0 steps in place of 1, launch a less"),
        (["launch b"], "launch b in place of launch a, its step 1"),
    ],
    ids=["more", "less", "other"],
)
def test_another_path_is_rejected(last: list[str], divergence: str) -> None:
    with pytest.raises(Rejected) as raised:
        checked(last)
    assert raised.value.reason is Reason.UNVERIFIED_PATH and divergence in raised.value.evidence


def test_a_flag_of_large_calls_alone_is_unverified() -> None:
    assert checked(["launch a"], flag="n=16, WRONG=True").endswith("gives a kernel a WRONG=True")
    assert not checked(["launch a"], flag="n=16, WRONG=True", ran=[LAUNCH.replace("n=16", "n=16, WRONG=True")])


@pytest.mark.parametrize("number", ["17", "1e-05", "-1"])
def test_a_number_that_only_large_calls_change_is_unverified(number: str) -> None:
    assert checked(["launch a"], flag=f"n={number}").endswith("gives a kernel a n other than 16")
    assert not checked(["launch a"], flag=f"n={number}", ran=[LAUNCH.replace("n=16", "n=3")])
    assert not checked(["launch a"], flag=f"n=16, num_warps={number}")


def test_a_timeout_names_the_calls() -> None:
    late = Report(Status.TIMED_OUT, None, {}, "more than 60 s of CPU time", "", "", 0.0, 0.0, 0.0)
    sandbox = Double(None)
    sandbox.report = late
    with pytest.raises(Rejected, match=r"for large inputs: more than 60 s") as raised:
        check_larger_calls(reference(), sandbox, SETTINGS)  # type: ignore[arg-type]
    assert raised.value.reason is Reason.TIMED_OUT


def test_a_call_of_a_trial_may_not_raise() -> None:
    with pytest.raises(Rejected, match="raises when called again: ValueError"):
        checked(["launch a"], raised="ValueError: not here")


def run(sandbox: Double, task: Task = TASK) -> None:
    run_large(reference(task), sandbox, SETTINGS)  # type: ignore[arg-type]


PROGRAMS = TraceReply(kernels=("kernel",), programs=("program",))


@pytest.mark.parametrize("status", [ExecutionStatus.TIMED_OUT, ExecutionStatus.FAULT, ExecutionStatus.DIED])
def test_kernels_must_terminate_on_a_large_grid(status: ExecutionStatus) -> None:
    with pytest.raises(Rejected) as raised:
        run(Double(PROGRAMS, status))
    assert "why" in raised.value.evidence


@pytest.mark.parametrize("status", [ExecutionStatus.DONE, ExecutionStatus.MEMORY])
def test_kernels_that_terminate_or_need_too_much_memory_pass(status: ExecutionStatus) -> None:
    sandbox = Double(PROGRAMS, status)
    run(sandbox)
    ((request, tensors),) = sandbox.requests
    assert math.prod(request["drawn"][0]["shape"]) > 1 << 22
    assert {"state.weight", "binary.x"} <= set(tensors)


def test_candidates_without_a_trace_or_of_one_shape_are_not_run() -> None:
    one_shape = replace(TASK, shape_general=False)
    for sandbox, task in ((Double(TraceReply(untraceable="…")), TASK), (Double(PROGRAMS), one_shape)):
        run(sandbox, task)
        assert sandbox.requests == []
