"""One build of the corpus of `chaos.py`, in a process with an injected fault."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import torch
from figures import ROOT
from fsspec.implementations.local import LocalFileSystem

from kernelquarry.pipeline.cli.open_run import on_runner, open_run, with_teachers
from kernelquarry.pipeline.graph import STAGES, named
from kernelquarry.pipeline.run.build import run_stage
from kernelquarry.pipeline.run.execute_stage import Counted, execute, number_of, read_shards, tag_as
from kernelquarry.pipeline.run.run import Run
from kernelquarry.pipeline.run.stage_directory import StageDirectory
from kernelquarry.pipeline.runtime import apply as stages
from kernelquarry.pipeline.runtime import hosts
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus, Gpus
from kernelquarry.pipeline.schema.arrow import count_records
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Candidate, Module

sys.path.append(str(ROOT / "tests"))

from scripted_endpoint import Said, ScriptedEndpoint
from teaching_table import TABLE
from traced_programs import SIZE, doubled_sum, kernel

WORKERS = 2
DAY_S = 86_400
LIMITS = (500, 5_000, 50_000)  # bytes of a file, on a full disk
FLUSHES = 60  # files and folders that a build writes, about
GPUS = (0, 1)
NOBODY = 65534
KERNELS = ("add", "scale")
_lent: list[Gpus] = []


class Unreliable(LocalFileSystem):
    """An object store that fails one request in three."""

    protocol = "unreliable"

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        if random.random() < 1 / 3:
            raise OSError(f"{path}: 503, slow down")
        return super()._open(path, mode, **kwargs)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of all stages up to `until`. Each record whose work starts is a line of `began`."""

    root: Path
    corpus: Path
    until: str

    @property
    def began(self) -> Path:
        return self.root.with_suffix(".began")

    def lines(self) -> list[str]:
        return self.began.read_text().splitlines() if self.began.exists() else []

    def run(self, fault: str, seed: int) -> None:
        """Run, and exit: with status 0 unless the fault stopped the run."""
        random.seed(seed)
        _prepare(fault, self.root)
        try:
            self._stages(fault, seed)
        except (UserError, OSError) as error:
            sys.exit(f"{fault or 'undisturbed'}: {error}")

    def _stages(self, fault: str, seed: int) -> None:
        store = f"unreliable://{self.root}/store" if fault == "requests" else str(self.root / "store")
        run = on_runner(open_run(self.root, str(self.corpus), self.root.parent, workers=WORKERS), None, store, "none")
        guarded = hosts.run_guarded

        def counted(work: Any, given: Any, *services: Any) -> Any:
            with self.began.open("a") as stream:
                stream.write(json.dumps([getattr(work, "__name__", "execute"), given.id]) + "\n")
            return guarded(work, given, *services)

        for stage in STAGES:
            hosts.run_guarded = guarded if stage.load().calls_models else counted
            with _teachers(run, fault) if stage.load().calls_models else nullcontext(run) as stage_run:
                run_stage(stage_run, stage, lambda *_: nullcontext())
            if stage.output_type is Candidate:
                hosts.run_guarded = counted
                _execute(run, fault, seed)
            if stage.name == self.until:
                return


def _prepare(fault: str, root: Path) -> None:
    match fault.rstrip(" 0123456789"):
        case "full":
            limit = random.choice(LIMITS)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        case "read only":
            os.setuid(NOBODY)
        case "kill at":
            _kill_at(int(fault.removeprefix("kill at")))
        case "requests":
            fsspec.register_implementation("unreliable", Unreliable, clobber=True)
        case "clock":
            _skew(root)


def _kill_at(flush: int) -> None:
    """Die at the n-th flush: of a file before its rename, or of a folder after one."""
    fsync, left = os.fsync, iter(range(flush - 1, -1, -1))

    def fatal(descriptor: int) -> None:
        fsync(descriptor)
        if not next(left):
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = fatal


def _skew(root: Path) -> None:
    """Shift the clock of this process by days, and give existing files times in the past and the future."""
    now, days = time.time, random.choice((-3, 3))
    for path in sorted(root.rglob("*")):
        at = now() + random.uniform(-2, 2) * DAY_S
        os.utime(path, (at, at))
    time.time = lambda: now() + days * DAY_S


@contextmanager
def _teachers(run: Run, fault: str) -> Iterator[Run]:
    """The run with a teacher whose answers are useless. With the fault "models", one request in two fails."""
    failures = [Said(status=500), Said(status=429, headers={"Retry-After": "0"}), Said(cut_at=20), Said(body=b"<html>")]

    def answer(request: dict[str, Any], number: int) -> Said:
        return (
            random.choice(failures)
            if fault == "models" and random.random() < 0.5
            else Said("```python\nimport os\n```")
        )

    with ScriptedEndpoint(answer) as endpoint:
        table = run.root.with_suffix(f".{os.getpid()}.toml")
        table.write_text(TABLE.format(url=endpoint.url))
        with_model = with_teachers(run, table, None)
        table.unlink()
        yield replace(with_model, cache=run.root)


def _execute(run: Run, fault: str, seed: int) -> None:
    """Execute a program for each candidate on two simulated GPUs, which the fault "gpu" takes away in the middle."""
    tidy = named("tidy")
    shards, directory = run.directory(tidy).kept, StageDirectory(run.root / "stages" / "07-execute")
    made_by = Fingerprint.of("pipeline.schema.ids")
    entered = sum(count_records(path, Candidate) for path in shards)
    inputs = {path.name: digest(path) for path in shards}
    if directory.finished(made_by.key, inputs) is not None:
        return
    executor = Path(__file__).with_name("lost_gpu.py")
    command = (sys.executable, str(executor), str(run.root), str(seed) if fault == "gpu" else "")
    work = stages.Work("execute", _doubled, Module, stages.ExecutionMode.GUESTS)
    with Gpus(GPUS, command) as gpus:
        _lent[:] = [gpus]  # a function that holds them cannot be sent to a worker
        execute(
            lambda: (
                read_shards(shards, Candidate)
                | stages.ApplyStage(work, made_by, run.store, run.sandbox)
                | tag_as("execute")
            ),
            stage="execute",
            kind=Module,
            made_by=made_by,
            directory=directory,
            inputs=inputs,
            counted=(Counted("execute", "module", entered),),
            shards=1,
        )


def _doubled(given: Candidate, _: Sandbox) -> Outcome[Module]:
    """Keep the candidate's module, with the GPU's output as its code."""
    values = torch.arange(SIZE, dtype=torch.float32) + number_of(given.id) % 100
    binaries = {f"binary.hash of {name}": torch.zeros(1, dtype=torch.uint8) for name in KERNELS}
    runs = [{"program": 0, "trial": 0, "state": "0", "poison": "nan", "launching": True}]
    request = {"kernels": [kernel(name) for name in KERNELS], "programs": [doubled_sum()], "runs": runs}
    execution = _lent[0].run(request, {"input.0.0": values, "state.0.weight": torch.ones(SIZE), **binaries}, 60.0)
    if execution.status != ExecutionStatus.DONE:
        raise RuntimeError(f"{execution.status}: {execution.error}")
    return Kept(replace(given.probed.module, code=str(execution.tensors["0.output.0"].tolist())))
