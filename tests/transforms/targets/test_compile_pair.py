"""The stage `targets`, with doubles of the guests."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import make_pair, make_verdict

from kernelquarry.pipeline.sandbox import Job, Report, Status
from kernelquarry.pipeline.sandbox.jobs.codegen import CodegenReply, Compiled, KernelSource
from kernelquarry.pipeline.sandbox.jobs.compile import CompiledCall, CompileReply
from kernelquarry.pipeline.sandbox.kernel_cache import KernelCache
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Generator, Pair
from kernelquarry.transforms.targets.compile_pair import compile_pair

ALL = ("sm_80", "sm_90", "sm_100", "gfx942")
PAIR = make_pair(verdict=make_verdict(targets=("sm_90",), launches=2))
LAUNCHES = (("add", (1,)), ("scale", (1,)))


def report(reply: Any, **tensors: torch.Tensor) -> Report:
    status = Status.RAISED if reply is None else Status.OK
    return Report(status, reply, tensors, "" if reply else "ValueError: no", "", "", 1.0, 1.0, 1.0)


class Guests:
    """A sandbox. Kernel IR does not compile for the target `fails`; the candidate raises if `raises`."""

    def __init__(self, folder: Path, fails: str = "", launches: Any = LAUNCHES, raises: bool = False) -> None:
        self.kernels = KernelCache(folder)
        self.compiled: list[str] = []
        self.jobs: list[Job] = []
        self._fails, self._launches, self._raises = fails, launches, raises

    def run(self, job: Job) -> Report:
        self.jobs.append(job)
        if job.kind.name == "compile":
            if self._raises:
                return report(None)
            sources = [KernelSource(target, name, {}) for target in job.request.targets for name in ("add", "scale")]
            named = {hashlib.sha256(repr(source).encode()).hexdigest(): source for source in sources}
            call = CompiledCall(0, launches=self._launches)
            return report(
                CompileReply({target: (call,) for target in job.request.targets}, named if job.request.deferred else {})
            )
        targets = [source.target for source in job.request.sources]
        self.compiled += targets
        kernels = tuple(Compiled("no such instruction") if each == self._fails else Compiled("", 4) for each in targets)
        binaries = {f"binary.{number}": torch.zeros(1, dtype=torch.uint8) for number in range(len(targets))}
        return report(CodegenReply("3.7.1", kernels), **binaries)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelquarry.transforms.verify.compiling.version", lambda _: "3.7.1")


def targets_of(guests: Any, pair: Pair = PAIR, targets: tuple[str, ...] = ALL) -> tuple[str, ...]:
    outcome = compile_pair(pair, guests, targets)
    assert isinstance(outcome, Kept)
    changed: Pair = outcome.record
    assert replace(changed, verdict=replace(changed.verdict, targets=pair.verdict.targets)) == pair
    return changed.verdict.targets


def test_the_row_names_the_targets_that_it_lacked(tmp_path: Path) -> None:
    guests = Guests(tmp_path)
    assert targets_of(guests) == ("sm_90", "sm_80", "sm_100", "gfx942")
    assert guests.jobs[0].request.targets == ("sm_80", "sm_100", "gfx942")


def test_each_kernel_is_compiled_once_for_each_target(tmp_path: Path) -> None:
    guests = Guests(tmp_path)
    for _ in range(3):
        targets_of(guests)
    assert sorted(guests.compiled) == sorted(["sm_80", "sm_100", "gfx942"] * 2)


def test_a_row_that_does_not_compile_for_a_target_stays_without_it(tmp_path: Path) -> None:
    assert targets_of(Guests(tmp_path, fails="gfx942")) == ("sm_90", "sm_80", "sm_100")


@pytest.mark.parametrize("guests", [{"launches": LAUNCHES[:1]}, {"raises": True}])
def test_a_row_that_launches_otherwise_keeps_its_own_target(tmp_path: Path, guests: Any) -> None:
    assert targets_of(Guests(tmp_path, **guests)) == ("sm_90",)


def test_kernels_of_a_model_are_compiled_in_its_own_guest(tmp_path: Path) -> None:
    guests = Guests(tmp_path)
    by_model = replace(PAIR, generator=Generator("model", "m", "1", "{}"))
    assert targets_of(guests, by_model) == ("sm_90", "sm_80", "sm_100", "gfx942")
    assert [job.kind.name for job in guests.jobs] == ["compile"] and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("known", "targets"), [(("sm_90",), ()), (("sm_90",), ("sm_90",)), ((), ALL), (ALL, ALL)])
def test_no_guest_runs_if_no_target_is_missing(tmp_path: Path, known: Any, targets: Any) -> None:
    guests = Guests(tmp_path)
    assert targets_of(guests, replace(PAIR, verdict=make_verdict(targets=known)), targets) == known
    assert not guests.jobs
