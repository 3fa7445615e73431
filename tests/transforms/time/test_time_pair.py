"""The stage `time`, with doubles of the guests and the GPU."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import make_pair, make_verdict, make_workload
from traced_programs import doubled_sum, kernel

from kernelquarry.pipeline.sandbox import Job, Report, Status
from kernelquarry.pipeline.sandbox.executor.service import Execution, ExecutionStatus, GpuDescription
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.pipeline.sandbox.jobs.timing import TimingReply
from kernelquarry.pipeline.sandbox.jobs.trace import TraceReply
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Engine, Pair, Timing
from kernelquarry.transforms.time import TimeSettings, time

WORKLOADS = (make_workload(4, 8), make_workload(3, 8))
PAIR = make_pair(workloads=WORKLOADS, verdict=make_verdict(engine=Engine.TRACE))
SETTINGS = TimeSettings(elements=1 << 16)
TIMES = {"eager": (90.0,) * 20, "compile": (60.0,) * 20, "candidate": (30.0,) * 20}
MEASURED = TimingReply(TIMES, {}, written=80_000_000, flops=0, wrong=0.0)
TRACED = TraceReply(programs=(doubled_sum(),), kernels=(kernel("add"), kernel("scale")))
BINARY = torch.zeros(1, dtype=torch.uint8)


def report(reply: Any, error: str = "", **tensors: torch.Tensor) -> Report:
    return Report(Status.OK if reply is not None else Status.RAISED, reply, tensors, error, "", "", 1.0, 1.0, 1.0)


class Gpu:
    """Double of a GPU and its executor."""

    description = GpuDescription("a double", "sm_90", "1", bandwidth=3e12, peak=1e15, cache=50_000_000, memory=80 << 30)

    def __init__(self, slope_s: float, status: ExecutionStatus) -> None:
        self._slope_s, self._status = slope_s, status
        self.requests: list[tuple[Any, Any]] = []
        self.lent = ""

    @contextlib.contextmanager
    def share(self) -> Iterator[int]:
        with self._lent("shared"):
            yield 0

    @contextlib.contextmanager
    def reserve(self) -> Iterator[int]:
        with self._lent("alone"):
            yield 0

    @contextlib.contextmanager
    def _lent(self, status: str) -> Iterator[None]:
        assert not self.lent
        self.lent = status
        try:
            yield
        finally:
            self.lent = ""

    def run(self, request: Any, tensors: Any, wall_s: float) -> Execution:
        assert not self.lent  # who holds a GPU asks for no other
        self.requests.append((request, tensors))
        reply = {"slope_s": self._slope_s} if self._status is ExecutionStatus.DONE else {}
        return Execution(self._status, reply, {}, "" if reply else "out of luck", 1.0)


class Guests:
    """A sandbox whose guests return these reports in turn, and the last of each kind repeatedly."""

    layers = {"network": "none"}

    def __init__(
        self, slope_s: float = 28e-6, status: ExecutionStatus = ExecutionStatus.DONE, **reports: list[Report]
    ) -> None:
        self.gpus = Gpu(slope_s, status)
        traced = report(TRACED, **{"binary.hash of add": BINARY, "binary.hash of scale": BINARY, "other": BINARY})
        timed = report(MEASURED, **{"state.weight": torch.ones(6)})
        self._reports = {"trace": [traced], "timing": [timed]} | reports
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Report:
        status = ""
        if job.kind.name == "timing":
            stored = sum(storage["bytes"] for storage in (job.request.program or {"storages": ()})["storages"])
            status = "alone" if job.request.candidate or stored > SETTINGS.buffers else "shared"
        assert self.gpus.lent == status
        self.jobs.append(job)
        reports = self._reports[job.kind.name]
        return reports.pop(0) if len(reports) > 1 else reports[0]


def timing(guests: Guests, pair: Pair = PAIR) -> Timing:
    outcome = time(pair, guests, SETTINGS)  # type: ignore[arg-type]
    assert isinstance(outcome, Kept) and not guests.gpus.lent
    (found,) = outcome.record.timings
    assert replace(outcome.record, timings=()) == pair
    return found


def test_without_a_gpu_a_pair_is_unchanged() -> None:
    class NoGpu:
        gpus = None

    assert time(PAIR, NoGpu()) == Kept(PAIR)  # type: ignore[arg-type]


def test_a_trace_is_timed_on_a_large_call() -> None:
    guests = Guests()
    found = timing(guests)
    assert (found.suspect, found.left_out, found.enlarged, found.engine) == ("", "", True, Engine.TRACE)
    assert [spec.shape for spec in found.workload.tensors] == [(8192, 8)]
    assert (found.over_eager, found.over_compile) == (3.0, 2.0)
    assert (found.floor_us, found.slope_us) == (pytest.approx(10.0), pytest.approx(28.0))
    assert found.environment.device == "a double"
    trace, job = guests.jobs
    assert job.request.program == doubled_sum() and job.request.candidate is None
    assert job.request.inputs == (InputSpec((8192, 8), "float32"),)
    assert trace.request.calls[0].inputs == job.request.inputs
    assert job.tensors.keys() == {"binary.hash of add", "binary.hash of scale"}


def test_the_executor_replays_the_trace_with_the_reference_s_state() -> None:
    guests = Guests()
    timing(guests)
    ((request, tensors),) = guests.gpus.requests
    assert request["programs"] == [doubled_sum()] and request["kernels"] == [*TRACED.kernels]
    assert tensors.keys() == {"state.weight", "binary.hash of add", "binary.hash of scale"}


def test_times_below_the_host_s_are_suspect() -> None:
    assert "by the host's clock" in timing(Guests(slope_s=150e-6)).suspect
    assert "no less than" in timing(Guests(timing=[report(replace(MEASURED, written=500_000_000))])).suspect


def test_a_failed_replay_is_suspect() -> None:
    found = timing(Guests(status=ExecutionStatus.FAULT))
    assert found.suspect == "the executor could not replay it: out of luck" and len(found.contenders) == 3


def test_a_smaller_call_follows_a_failure() -> None:
    failed, timed = report(None, "OutOfMemoryError: CUDA out of memory"), report(MEASURED)
    found = timing(Guests(timing=[failed, timed]))
    assert [spec.shape for spec in found.workload.tensors] == [(2048, 8)]
    assert timing(Guests(trace=[report(with_bytes(17 << 30)), report(TRACED)])).workload == found.workload
    assert timing(Guests(trace=[report(None, "MemoryError"), report(TRACED)])).workload == found.workload


def with_bytes(size: int) -> TraceReply:
    traced = copy.deepcopy(TRACED)
    traced.programs[0]["storages"][2]["bytes"] = size
    return traced


def test_a_call_with_large_buffers_gets_a_gpu_of_its_own() -> None:
    found = timing(Guests(trace=[report(with_bytes(12 << 30))]), replace(PAIR, shape_general=False))
    assert len(found.contenders) == 3
    found = timing(Guests(trace=[report(with_bytes(17 << 30))]), replace(PAIR, shape_general=False))
    assert found.left_out == "needs 85 GiB, of the GPU's 80"


def test_a_pair_that_cannot_be_timed_is_kept() -> None:
    for guests in (
        Guests(timing=[report(None, "RuntimeError: no such operator")]),
        Guests(timing=[report(replace(MEASURED, times={}))]),
        Guests(trace=[report(TraceReply(load_error="ImportError"))]),
        Guests(trace=[report(TraceReply(programs=({},)))]),
    ):
        found = timing(guests)
        assert (found.contenders, found.workload, found.enlarged) == ((), WORKLOADS[0], False)
        assert found.left_out and not found.suspect and found.over_eager == 0.0


def test_without_torch_compile_there_are_two_contenders() -> None:
    times = {name: runs for name, runs in TIMES.items() if name != "compile"}
    found = timing(Guests(timing=[report(replace(MEASURED, times=times, left_out={"compile": "no compiler"}))]))
    assert [timed.name for timed in found.contenders] == ["eager", "candidate"]
    assert (found.left_out, found.over_compile, found.suspect) == ("compile: no compiler", 0.0, "")


@pytest.mark.parametrize("engine", [Engine.TRACE, Engine.GUEST])
def test_a_candidate_without_a_trace_is_timed_from_its_source(engine: Engine) -> None:
    guests = Guests(trace=[report(TraceReply(untraceable="reads values with python.item"))])
    found = timing(guests, replace(PAIR, verdict=make_verdict(engine=engine)))
    assert (found.engine, found.slope_us, found.suspect) == (Engine.GUEST, 0.0, "")
    assert guests.jobs[-1].request.candidate.code == PAIR.triton_code and not guests.gpus.requests
    assert len(guests.jobs) == (2 if engine is Engine.TRACE else 1)


def test_kernels_for_one_size_are_timed_on_that_size() -> None:
    found = timing(Guests(), replace(PAIR, shape_general=False))
    assert (found.workload, found.enlarged) == (WORKLOADS[0], False) and len(found.contenders) == 3
