"""What a model's candidate does where no trial looks. Its executor is a double; evil cases try the guest."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelquarry.pipeline.sandbox import Job, Report, Status
from kernelquarry.pipeline.sandbox.executor.service import Execution, ExecutionStatus, GpuDescription
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.rehearsal import rehearse, run_large
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

    def __init__(self, reply: dict[str, Any], status: ExecutionStatus = ExecutionStatus.DONE) -> None:
        self.report = Report(Status.OK, reply, {"binary.x": torch.zeros(1)}, "", "", "", 0.0, 0.0, 0.0)
        self.status, self.asked = status, list[tuple[Any, Any]]()

    @property
    def gpus(self) -> Double:
        return self

    def run(self, request: Any, tensors: Any = None, wall_s: float = 0) -> Any:
        if isinstance(request, Job):
            self.job = request
            return self.report
        self.asked.append((request, tensors))
        return Execution(self.status, {}, {}, "why", 0.0)


def reference(task: Task = TASK) -> Any:
    """What is asked of a reference, without its answers."""
    trials = plan(task)
    calls = [trial.workload for trial in trials]
    others = [index for index, call in enumerate(calls) if call not in calls[:index]][1:]
    tensors = draw(task, trials)
    return SimpleNamespace(task=task, trials=trials, tensors=tensors, undrawn={}, of_other_calls=lambda: others)


Later = list[tuple[list[str] | None, list[str], str]]
NOTHING = {"handled": "", "keeps": "", "left": ""}
LAUNCH = "a[2, 1, 1](x=float32(input 0, [2, 8], [8, 1], 0), n=16)"


def reply_to(job: Job, last: list[str] | None, later: Later, given: str, raised: str) -> dict[str, Any]:
    """All calls go one way; their launches are given `given`, and the first of them says that it `raised`."""
    calls = job.request["calls"]
    largest = max(call["inputs"][0]["shape"][0] for call in calls)
    assert largest * 8 > 1 << 24 and calls[-1]["inputs"][0]["shape"][0] * 8 > 1 << 23, "the last calls are large"
    paths: list[list[str] | None] = [["launch a"]] * (len(calls) - 1)
    paths[0] = None if raised else paths[0]
    told = [[given]] * len(calls)
    reply = {"paths": [*paths, last], "told": told, "raised": [raised] * len(calls), "later": later}
    return reply | NOTHING


def rehearsed(last: list[str] | None, later: Later | None = None, given: str = LAUNCH, raised: str = "") -> None:
    asked = reference()
    told = [[LAUNCH] for _ in asked.trials]
    sandbox = Double({"paths": [], "told": [], "raised": [], "later": []} | NOTHING)
    with pytest.raises(Rejected, match="0 paths of"):
        rehearse(asked, told, sandbox, SETTINGS)  # type: ignore[arg-type]
    reply = reply_to(sandbox.job, last, later or [], given, raised)
    rehearse(asked, told, Double(reply), SETTINGS)  # type: ignore[arg-type]


def test_the_way_that_trials_go_may_be_gone_again() -> None:
    rehearsed(["launch a"])


def test_a_large_call_that_is_refused_goes_no_way() -> None:
    rehearsed(None)


@pytest.mark.parametrize(
    ("last", "later", "parting"),
    [
        (["launch a", "zero_"], [], "8]: 2 steps in place of 1, zero_ more"),
        ([], [], "0 steps in place of 1, launch a less"),
        (["launch a"], [(["zero_"], [], "")], "another way: zero_ in place of launch a, its step 1"),
        (["launch a"], [(None, [], "")], "None in place of"),
    ],
    ids=["large", "less", "later", "no path"],
)
def test_another_way_was_not_tried(last: list[str], later: Later, parting: str) -> None:
    with pytest.raises(Rejected) as raised:
        rehearsed(last, later)
    assert raised.value.reason is Reason.UNVERIFIED_PATH and parting in raised.value.evidence


def test_what_is_not_done_in_time_says_when() -> None:
    late = Report(Status.TIMED_OUT, None, {}, "more than 60 s of CPU time", "", "", 0.0, 0.0, 0.0)
    sandbox = Double({})
    sandbox.report = late
    with pytest.raises(Rejected, match=r"for large inputs: more than 60 s") as raised:
        rehearse(reference(), [], sandbox, SETTINGS)  # type: ignore[arg-type]
    assert raised.value.reason is Reason.TIMED_OUT


def test_later_calls_give_launches_what_the_first_gave() -> None:
    with pytest.raises(Rejected, match=r"n=17\) in place of n=16"):
        rehearsed(["launch a"], [(["launch a"], [LAUNCH.replace("n=16", "n=17")], "")])


def test_launches_are_given_what_they_were_given_in_the_trial() -> None:
    with pytest.raises(Rejected, match=r"input 1, .* in place of .*input 0"):
        rehearsed(["launch a"], given=LAUNCH.replace("input 0", "input 1"))


def test_what_ran_in_a_trial_runs_again() -> None:
    with pytest.raises(Rejected, match="raises where it is called again: ValueError"):
        rehearsed(["launch a"], raised="ValueError: not here")


def run(sandbox: Double, task: Task = TASK) -> None:
    run_large(reference(task), sandbox, SETTINGS)  # type: ignore[arg-type]


PROGRAMS = {"kernels": ["kernel"], "programs": ["program"]}


@pytest.mark.parametrize("status", [ExecutionStatus.TIMED_OUT, ExecutionStatus.FAULT, ExecutionStatus.DIED])
def test_kernels_must_end_on_a_large_grid(status: ExecutionStatus) -> None:
    with pytest.raises(Rejected) as raised:
        run(Double(PROGRAMS, status))
    assert "why" in raised.value.evidence


@pytest.mark.parametrize("status", [ExecutionStatus.DONE, ExecutionStatus.MEMORY])
def test_what_ends_or_is_too_much_says_nothing(status: ExecutionStatus) -> None:
    sandbox = Double(PROGRAMS, status)
    run(sandbox)
    ((request, tensors),) = sandbox.asked
    assert math.prod(request["drawn"][0]["shape"]) > 1 << 22
    assert {"state.weight", "binary.x"} <= set(tensors)


def test_what_cannot_be_traced_or_has_one_size_is_not_run() -> None:
    for sandbox, task in ((Double({"untraceable": "…"}), TASK), (Double(PROGRAMS), replace(TASK, shape_general=False))):
        run(sandbox, task)
        assert sandbox.asked == []
