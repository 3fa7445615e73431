"""Binaries of deferred kernels, and who may add to the cache of compiled kernels. Guests are doubles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_execution import TASK, TRIALS, report
from traced_programs import doubled_sum, kernel

from kernelquarry.pipeline.sandbox import Job, Limits
from kernelquarry.pipeline.sandbox.jobs.codegen import CodegenReply, Compiled, KernelSource
from kernelquarry.pipeline.sandbox.jobs.compile import CompiledCall, CompileReply
from kernelquarry.pipeline.sandbox.jobs.trace import TraceReply
from kernelquarry.pipeline.sandbox.kernel_cache import KernelCache
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine
from kernelquarry.transforms.verify.compiling import compile_kernels
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.execution import trace
from kernelquarry.transforms.verify.task import VerifySettings

SOURCES = {f"hash of {name}": KernelSource("sm_90", name, {}) for name in ("add", "scale")}
LAUNCHES = [[("add", (1, 1, 1)), ("scale", (1, 1, 1))]]


class Guests:
    """A sandbox whose candidate's guest defers both kernels, and forges a binary for each.

    The guest `codegen` compiles any text but `fails`.
    """

    gpus = None

    def __init__(self, folder: Path, fails: str = "") -> None:
        self.kernels = KernelCache(folder)
        self.requests: list[Any] = []
        self._fails = fails

    def run(self, job: Job) -> Any:
        self.requests.append(job.request)
        forged = {f"binary.{name}": torch.zeros(9, dtype=torch.uint8) for name in SOURCES}
        match job.kind.name:
            case "trace":
                programs = tuple(doubled_sum() for _ in job.request.calls)
                reply = TraceReply(programs=programs, kernels=(kernel("add"), kernel("scale")), sources=SOURCES)
                return report(reply, tensors=forged)
            case "compile":
                call = CompiledCall(0, launches=(("add", (1,)), ("scale", (1,))))
                return report(CompileReply({"sm_90": (call,)}, SOURCES), tensors=forged)
            case "codegen":
                texts = [source.text for source in job.request.sources]
                made = tuple(Compiled("no room") if text == self._fails else Compiled("", 8, 64) for text in texts)
                binaries = {f"binary.{i}": torch.tensor([*text.encode()]).byte() for i, text in enumerate(texts)}
                return report(CodegenReply("3.7.1", made), tensors=binaries)

    def compiled(self) -> list[str]:
        """The texts that the guest `codegen` was asked for."""
        return [source.text for request in self.requests for source in getattr(request, "sources", ())]


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guests:
    monkeypatch.setattr("kernelquarry.transforms.verify.compiling.version", lambda _: "3.7.1")
    return Guests(tmp_path)


def traced(guests: Any, by_model: bool = False, shape_general: bool = True) -> Any:
    task = replace(TASK, by_model=by_model, shape_general=shape_general)
    return trace(task, TRIALS, "sm_90", guests, Limits())


def compiled(guests: Any, by_model: bool = False) -> tuple[str, ...]:
    task = replace(TASK, by_model=by_model)
    reference: Any = SimpleNamespace(
        task=task, trials=TRIALS, tensors={}, first_trials_of_calls=lambda: [0],
        sandbox=guests, settings=VerifySettings(),
    )  # fmt: skip
    return compile_kernels(reference, Engine.INTERPRETER)


def entries(guests: Guests) -> list[bytes]:
    found = (guests.kernels.get(source, "3.7.1") for source in SOURCES.values())
    return [entry.data for entry in found if entry is not None]


def test_a_trace_launches_what_the_compiler_made_of_its_text(guests: Guests) -> None:
    found = traced(guests)
    for claim, text in zip(found.reply.kernels, ("add", "scale"), strict=True):
        assert (claim["name"], claim["symbol"], claim["warps"], claim["shared"]) == (text, "kernel", 8, 64)
        assert bytes(found.tensors[f"binary.{claim['sha256']}"].numpy()) == text.encode()
    assert found.reply.sources == {}


def test_a_kernel_is_compiled_once_for_all_candidates(guests: Guests) -> None:
    first = traced(guests)
    again = traced(guests)
    assert guests.compiled() == ["add", "scale"]
    assert again.reply == first.reply and again.tensors.keys() == first.tensors.keys()
    compiled(guests)
    assert guests.compiled() == ["add", "scale"]


def test_a_guest_cannot_forge_an_entry(guests: Guests) -> None:
    """The candidate's guest sent a binary for each kernel, too."""
    traced(guests)
    assert entries(guests) == [b"add", b"scale"]


@pytest.mark.parametrize("run", [traced, compiled])
def test_a_model_s_candidate_adds_no_entry(guests: Guests, run: Any) -> None:
    """Its guest is not asked to defer kernels. This one sends texts all the same."""
    run(guests, by_model=True)
    assert [request.deferred for request in guests.requests] == [False]
    assert entries(guests) == []
    run(guests)
    assert [request.deferred for request in guests.requests[1:2]] == [True] and len(entries(guests)) == 2


def test_a_kernel_that_does_not_compile_rejects_the_candidate(tmp_path: Path) -> None:
    for run in (traced, compiled):
        with pytest.raises(Rejected) as rejected:
            run(Guests(tmp_path / run.__name__, fails="scale"))
        assert (rejected.value.reason, rejected.value.evidence) == (Reason.DOES_NOT_COMPILE, "sm_90: no room")


def test_a_call_that_may_be_refused_is_refused_if_its_kernel_does_not_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(TASK), "may_refuse", lambda task, call: True)
    found = traced(Guests(tmp_path, fails="scale"))
    assert (found.reply.refused, found.reply.programs) == ((0, 1), ())
