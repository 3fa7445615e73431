"""Measure cost and benefit of distributing a build on this machine.

    python benchmarks/scale.py memory                      # a worker's memory with 100 times the input; 2 minutes
    python benchmarks/scale.py speedup                     # mine, probe and lower by 1 and by 2 worker processes
    python benchmarks/scale.py overhead out/tiny           # a build's probe, lower and verify again; 15 minutes
    python benchmarks/scale.py capacity out/tiny out/default   # cost of a file in each stage, docs/results/capacity.md

`overhead` repeats probe, lower and verify of a finished run for all records or, with `--records`, for some of each.
The time of the stage functions is that of their host threads and guests, less the time of an empty guest for each.
All other core time is overhead: Beam, the store, warm processes, forks and messages. Warm processes start once per
stage, so a sample of records shows more of them than all records do. Idle cores at the end of a stage are no core
time; the share of the wall time that stage functions fill is printed too.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from figures import record

from kernelquarry.pipeline.cli.open_run import open_run, sandbox_settings
from kernelquarry.pipeline.graph import STAGES, Stage, named
from kernelquarry.pipeline.run.execute_stage import Counted, core_seconds, execute, read_shards, tag_as
from kernelquarry.pipeline.run.run import Run
from kernelquarry.pipeline.run.stage_directory import StageDirectory
from kernelquarry.pipeline.runtime import apply as stages
from kernelquarry.pipeline.runtime import hosts
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint, StageManifest
from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, ScriptRequest
from kernelquarry.pipeline.schema.arrow import read_records, write_shard
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module
from kernelquarry.transforms.stage_transform import ApplyToEach

COMMAND = "python benchmarks/scale.py"
PROCESSES = "--runner=FnApiRunner\n--direct_running_mode=multi_processing\n--direct_num_workers={}\n"
KEY = Fingerprint.of("pipeline.schema.ids")
HEAVY = ("probe", "lower", "verify")
NOTHING = ScriptRequest("def main(arguments, tensors):\n    return {}, {}\n", [])
FEW, MANY = 100, 10_000  # records
SHARD = 1000
WORDS = sorted({*dir(math), *dir(str), *dir(os)})


def keep(module: Module, sandbox: Sandbox) -> Outcome[Module]:
    return Kept(module)


def peak(number: int) -> float:
    """Peak MiB of the larger of two worker processes that handle `number` modules of 2 KB."""
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name, f"{first}.parquet") for first in range(0, number, SHARD)]
        for path, first in zip(paths, range(0, number, SHARD), strict=True):
            write_shard(path, [_module(n) for n in range(first, min(number, first + SHARD))], Module)
        work = stages.Work("keep", keep, Module, stages.ExecutionMode.GUESTS)
        apply = stages.ApplyStage(work, KEY, Path(name, "store"), sandbox_settings(1))
        with Scales() as scales:
            execute(
                lambda: read_shards(paths, Module) | apply | tag_as("keep"),
                stage="keep",
                kind=Module,
                made_by=KEY,
                directory=StageDirectory(Path(name, "stage")),
                inputs={},
                counted=(Counted("keep", "module", number),),
                shards=max(1, number // SHARD),
                options=tuple(PROCESSES.format(2).split()),
            )
        return scales.largest_mb


class Scales:
    """A context manager that samples the memory of Beam's worker processes."""

    def __init__(self) -> None:
        self.largest_mb = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Scales:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            for process in psutil.Process().children():
                with suppress(psutil.NoSuchProcess, psutil.ZombieProcess, FileNotFoundError, ProcessLookupError):
                    if any("sdk_worker_main" in word for word in process.cmdline()):  # before exec, it is a copy of us
                        self.largest_mb = max(self.largest_mb, _high_water_mb(process.pid))


def _high_water_mb(pid: int) -> float:
    """Peak MB of this process's current program; `getrusage` would include the process that it was forked from."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _module(number: int) -> Module:
    random_ = random.Random(number)
    code = "\n".join(f"{random_.choice(WORDS)} = {random_.choice(WORDS)}({random_.random():.4f})" for _ in range(75))
    source = SourceRef("none", "none", "1", f"{number}.py", "")
    return Module(module_id(code), "Model", code, source, Licence("MIT", ""), ())


def memory() -> None:
    few, many = peak(FEW), peak(MANY)
    note = f"{few:.0f} MiB with {FEW} records, {many:.0f} MiB with {MANY:,}"
    record("scale.memory", many / few, f"{COMMAND} memory", note)


def speedup() -> None:
    took = {}
    with tempfile.TemporaryDirectory() as name:
        for processes in (1, 2):
            root, options = Path(name, str(processes)), Path(name, f"{processes}.options")
            options.write_text(PROCESSES.format(processes))
            for stage in (stage.name for stage in STAGES[: STAGES.index(named("lower")) + 1]):
                command = [str(Path(sys.executable).with_name("kernelquarry")), stage, str(root)]
                command += ["--corpus", "tiny"] if stage == "read" else []
                command += ["--workers", "1", "--runner", str(options)] if stage in ("mine", "probe", "lower") else []
                subprocess.run(command, check=True)
            found = [StageManifest.read(path) for path in root.glob("stages/*/stage.json")]
            took[processes] = sum(m.seconds for m in found if m is not None and m.stage in ("mine", "probe", "lower"))
    note = f"{took[1]:.0f} s with one worker process, {took[2]:.0f} s with two"
    record("scale.speedup", took[1] / took[2], f"{COMMAND} speedup", note)


class Clock:
    """Core seconds of stage functions: of their host threads and of their guests."""

    def __init__(self) -> None:
        self._lock, self.here_s, self.guests_s = threading.Lock(), 0.0, 0.0
        self.guests = Counter[str]()  # by kind

    def guarded(self, guarded: Any, work: Any, given: Any, *services: Any) -> Any:
        began = time.thread_time()
        outcome = guarded(work, given, *services)
        with self._lock:
            self.here_s += time.thread_time() - began
        return outcome

    def run(self, run: Any, sandbox: Sandbox, job: Job) -> Report:
        began = time.thread_time()
        report: Report = run(sandbox, job)
        with self._lock:  # sending it and waiting for it is no work of the stage's
            self.here_s -= time.thread_time() - began
            self.guests_s += report.cpu_s
            self.guests[job.kind.name] += 1
        return report


@dataclass(frozen=True, slots=True)
class Spent:
    """Core seconds of a stage, by part."""

    records: int
    core_s: float  # all of them
    bare_s: float  # of the stage functions
    starts_s: float  # of warm processes, until they are warm
    guests_s: float  # of guests that do nothing, as many as there were: forks and messages
    wall_s: float

    @property
    def rest_s(self) -> float:
        """Core seconds of Beam, the store, and reading and writing shards."""
        return self.core_s - self.bare_s - self.starts_s - self.guests_s


def overhead(root: Path, number: int | None) -> None:
    run, cores = open_run(root, None, Path("out/cache")), os.cpu_count() or 1
    spent = [_again(run, stage, number) for stage in STAGES if stage.name in HEAVY]
    total = Spent(*(sum(values) for values in zip(*map(astuple, spent), strict=True)))
    filled = total.bare_s / (cores * total.wall_s)
    note = (
        f"{' + '.join(str(each.records) for each in spent)} records: {total.core_s:.0f} core-seconds, "
        f"{total.bare_s:.0f} in the stage functions, {total.starts_s:.0f} until processes were warm, "
        f"{total.guests_s:.0f} forks and messages, {total.rest_s:.0f} Beam and the store; "
        f"{total.wall_s:.0f} s on {cores} cores, of which stage functions filled {filled:.0%}"
    )
    command = f"{COMMAND} overhead out/{root.name}" + (f" --records {number}" if number else "")
    record("scale.overhead", 100 * (total.core_s / total.bare_s - 1), command, note)


def _again(run: Run, stage: Stage, number: int | None) -> Spent:
    """Repeat a stage on `number` of its inputs (None: all) with an empty store."""
    transform = stage.load()
    assert stage.input_type is not None and issubclass(transform, ApplyToEach)
    kind, clock = stage.input_type, Clock()
    before = run.directory(STAGES[STAGES.index(stage) - 1])
    kept = [each for path in before.kept for each in read_records(path, kind)]
    given = kept[:: max(1, len(kept) // number)][:number] if number else kept
    guarded, started = hosts.run_guarded, Sandbox.run
    hosts.run_guarded = partial(clock.guarded, guarded)
    Sandbox.run = lambda sandbox, job: clock.run(started, sandbox, job)  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as name:
        shard = Path(name, "given.parquet")
        apply = stages.ApplyStage(transform.work, KEY, Path(name, "store"), run.sandbox)
        write_shard(shard, given, kind)
        manifest = execute(
            lambda: read_shards([shard], kind) | apply | tag_as(stage.name),
            stage=stage.name,
            kind=stage.output_type,
            made_by=KEY,
            directory=StageDirectory(Path(name, "stage")),
            inputs={},
            counted=(Counted(stage.name, "module", len(given)),),
            shards=1,
        )
    hosts.run_guarded, Sandbox.run = guarded, started  # type: ignore[method-assign]
    empty_s, job_s = _nothing(run.sandbox)
    guests = clock.guests.total()
    bare_s = clock.here_s + clock.guests_s - guests * empty_s
    starts_s = _starting(run.sandbox, tuple(clock.guests))
    spent = Spent(len(given), manifest.core_s, bare_s, starts_s, guests * job_s, manifest.seconds)
    print(stage.name, spent, flush=True)
    return spent


def _nothing(settings: SandboxSettings, jobs: int = 100) -> tuple[float, float]:
    """Core seconds of an empty guest: its own, and those of all processes."""
    before, own = core_seconds(), []
    with Sandbox(settings) as sandbox:
        own = [sandbox.run(Job(SCRIPT, NOTHING)).cpu_s for _ in range(jobs)]
    all_s = core_seconds() - before - _starting(settings, ("script",))
    return sorted(own)[jobs // 2], max(0.0, all_s / jobs)


def _starting(settings: SandboxSettings, kinds: tuple[str, ...]) -> float:
    """Core seconds to start the warm processes of these kinds."""
    before = core_seconds()
    with Sandbox(settings) as sandbox:
        sandbox.start(kinds)
    return core_seconds() - before


def capacity(roots: list[Path]) -> None:
    """Print the cost and the results of each stage of the runs."""
    print("| stage | " + " | ".join(f"{root.name}: in | core s | MB out" for root in roots) + " |")
    runs = [open_run(root, None, Path("out/cache")) for root in roots]
    for stage in STAGES:
        cells = []
        for run in runs:
            manifest = run.manifest(stage)
            if manifest is None:
                cells += ["-"] * 3
                continue
            size = sum(path.stat().st_size for path in run.directory(stage).path.glob("*.parquet"))
            core_s = manifest.core_s or manifest.seconds * (os.cpu_count() or 1)  # older ones: at most this
            cells += [f"{manifest.counts[0].entered:,}", f"{core_s:,.0f}", f"{size / 1e6:.1f}"]
        print(f"| {stage.name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("memory", "speedup", "overhead", "capacity"))
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--records", type=int, help="of each stage that `overhead` repeats; all if it is not given")
    given = parser.parse_args()
    match given.what:
        case "memory":
            memory()
        case "speedup":
            speedup()
        case "overhead":
            overhead(given.runs[0], given.records)
        case _:
            capacity(given.runs)


if __name__ == "__main__":
    main()
