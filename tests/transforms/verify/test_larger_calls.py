"""Plans of large calls, and kernels on a large grid. The guest and the executor are doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.sandbox import Job, Report, Status
from kernelquarry.pipeline.sandbox.executor.service import Execution, ExecutionStatus, GpuDescription
from kernelquarry.pipeline.sandbox.jobs.trace import TraceReply
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.larger_calls import check_larger_calls, run_large
from kernelquarry.transforms.verify.plan import PlannedCall, Planner
from kernelquarry.transforms.verify.plan.agreement import planned_calls
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


def reference(task: Task = TASK, sandbox: Double | None = None) -> Any:
    """The attributes of a reference without its outputs."""
    trials = plan(task)
    calls = [trial.workload for trial in trials]
    first = [index for index, call in enumerate(calls) if call not in calls[:index]]
    tensors = draw(task, trials)
    return SimpleNamespace(
        task=task, trials=trials, tensors=tensors, undrawn={}, first_trials_of_calls=lambda: first,
        sandbox=sandbox, settings=SETTINGS,
    )  # fmt: skip


SNAPSHOT = {
    "root": 0, "entries": [], "tensors": [], "storages": [],
    "modules": [{"class": "ModelNew", "attributes": [], "layers": []}],
}  # fmt: skip
CODE = """import torch
import triton
import triton.language as tl


@triton.jit
def a(x_ptr, out_ptr, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def b(x_ptr, out_ptr, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out_ptr, n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        is_large = n > 1 << 20
        {body}
        return out
"""
LAUNCH = "a[(triton.cdiv(n, 64),)](x, out, 16, False, BLOCK=64, num_warps=4)"


def check(
    body: str = LAUNCH,
    task: Task = TASK,
    ran: tuple[str, ...] = (),
    rows: int = 0,
    run: Callable[..., Any] | None = None,
    code: str = CODE,
) -> None:
    """Check the candidate after its trials, and a call with so many rows."""
    task = replace(task, triton_code=code.replace("{body}", body.replace("\n", "\n        ")))
    planner = Planner(Source(task.triton_code), SNAPSHOT)
    further = [PlannedCall(call.args, call.kwargs, call.tensors, alone=True) for call in (of_rows(rows),) if rows]
    for call in (*planned_calls(task, plan(task)), *further):
        planner.plan(call)
    check_larger_calls(reference(task), planner, ran, run=run)


def test_the_path_of_the_trials_passes() -> None:
    check()


@pytest.mark.parametrize("body", ["assert not is_large\n", "if is_large: return out.view(3, 3)\n"])
def test_a_large_call_may_raise(body: str) -> None:
    check(body + LAUNCH)
    check(LAUNCH.replace("64),)", "64), 1 + 70000 * is_large)"))


def test_calls_have_sixteen_million_elements() -> None:
    with pytest.raises(Rejected, match="goes another way"):
        check(f"if n > 1 << 24: out.zero_()\n{LAUNCH}")


def test_a_path_that_another_call_took_passes() -> None:
    body = f"if n > 4096: out.zero_()\n{LAUNCH.replace('False', 'n > 4096')}"
    with pytest.raises(Rejected, match="goes another way"):
        check(body)
    check(body, rows=600)


LAYERS = f"""for layer in range(2):
    out.zero_()
    for row in range(len(x)):
        if row: out.fill_(1.0)
        {LAUNCH}"""


def test_loops_over_an_axis_and_layers_may_iterate_more_often() -> None:
    check(f"for row in range(len(x)):\n    {LAUNCH}")
    check(LAYERS)
    body = f"    {LAUNCH}\n    step += 1\n    if step == 7: continue\n"
    check(f"step = 0\nwhile step < len(x):\n{body}else:\n    out.zero_()")


@pytest.mark.parametrize(
    ("count", "divergence"),
    [("1 + n // 2**12", "2 iterations in place of 1"), ("n // 2**12", "1 steps in place of 0, launch a more")],
)
def test_a_loop_that_always_had_one_number_of_iterations_keeps_it(count: str, divergence: str) -> None:
    with pytest.raises(Rejected) as raised:
        check(f"for again in range({count}):\n    {LAUNCH}")
    assert divergence in raised.value.evidence


@pytest.mark.parametrize("other", [LAUNCH.replace("a[", "b["), "out.fill_(2.0); " + LAUNCH, "break", "continue"])
def test_iterations_of_a_loop_go_known_ways(other: str) -> None:
    with pytest.raises(Rejected, match="goes another way"):
        check(LAYERS.replace("if row:", f"if row == 97: {other}\n        if row:"))


@pytest.mark.parametrize("then", ["x = x.clone()", "\n    for y in (x, out): y.clone()", "x = x.t().contiguous()"])
def test_copies_in_new_memory_are_no_other_path(then: str) -> None:
    check(f"if is_large: {then}\n{LAUNCH}")


@pytest.mark.parametrize("then", ["out.copy_(x)", "x = x.half()"])
def test_other_copies_are_another_path(then: str) -> None:
    with pytest.raises(Rejected, match="copy"):
        check(f"if is_large: {then}\n{LAUNCH}")


@pytest.mark.parametrize(
    ("then", "divergence"),
    [
        (LAUNCH, "8]: 2 steps in place of 1, launch a more"),
        ("out.zero_()", "fill in place of launch a, its step 1"),
        ("out = out + 1", "aten.add in place of launch a, its step 1"),
        ("return out", "0 steps in place of 1, launch a less"),
        (LAUNCH.replace("a[", "b[") + "; return out", "launch b in place of launch a, its step 1"),
    ],
    ids=["more", "fill", "operator", "less", "other"],
)
def test_another_path_is_rejected(then: str, divergence: str) -> None:
    with pytest.raises(Rejected) as raised:
        check(f"if is_large: {then}\n{LAUNCH}")
    assert raised.value.reason is Reason.UNVERIFIED_PATH and divergence in raised.value.evidence


def test_a_flag_of_large_calls_alone_is_unverified() -> None:
    body = LAUNCH.replace("False", "is_large")
    with pytest.raises(Rejected, match="gives a kernel a WRONG=True"):
        check(body)
    check(body, ran=("a[1, 1, 1](WRONG=True)",))


@pytest.mark.parametrize("number", ["17", "1e-05", "-1"])
def test_a_number_that_only_large_calls_change_is_unverified(number: str) -> None:
    body = LAUNCH.replace("16", f"{number} if is_large else 16")
    with pytest.raises(Rejected, match="gives a kernel a n other than 16"):
        check(body)
    check(body, ran=("a[1, 1, 1](n=3)",))
    check(LAUNCH.replace("num_warps=4", "num_warps=8 if is_large else 4"))


@pytest.mark.parametrize("new", ["n > 5000, ", "False, again=1 + n // 5000, "])
def test_an_argument_of_large_calls_is_tried_on_smaller_ones(new: str) -> None:
    body, tried = LAUNCH.replace("False, ", new), list[tuple[int, str]]()
    code = CODE.replace("n, WRONG", "n, WRONG, again") if "again" in new else CODE

    def run(workload: Workload, distribution: str) -> None:
        tried.append((math.prod(workload.tensors[0].shape), distribution))
        if distribution == "columns":
            raise Rejected(Reason.ORACLE_FAILED, "undecided")

    check(body, run=run, code=code)
    least = 5008 if "n > 5000" in new else 5000
    assert tried == [(least, "normal"), (least, "columns"), (4 * least, "normal")]


@pytest.mark.parametrize(
    ("reason", "found"), [(Reason.WRONG_VALUES, Reason.WRONG_VALUES), (Reason.TIMED_OUT, Reason.UNVERIFIED_PATH)]
)
def test_an_argument_of_large_calls_must_be_right_on_smaller_ones(reason: Reason, found: Reason) -> None:
    def run(workload: Workload, distribution: str) -> None:
        raise Rejected(reason, "found")

    with pytest.raises(Rejected) as raised:
        check(LAUNCH.replace("False", "n > 5000"), run=run)
    assert raised.value.reason is found
    with pytest.raises(Rejected, match="gives a kernel a WRONG=True"):
        check(LAUNCH.replace("False", "n > 1 << 22"), run=lambda *_: None)  # too large to be run


def test_a_way_that_no_trial_went_is_not_compared_further() -> None:
    body = f"if n > 4096: b[(1,)](x, out, len(x) - is_large, is_large, BLOCK=64)\nelse: {LAUNCH}"
    check(body, rows=600)


def test_a_candidate_of_one_shape_is_not_compared() -> None:
    check("if is_large: out.zero_()\n" + LAUNCH, replace(TASK, shape_general=False))


def run(sandbox: Double, task: Task = TASK) -> None:
    run_large(reference(task, sandbox))


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
