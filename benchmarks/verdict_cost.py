"""Measure the core-seconds of a verdict without a GPU: of lowered candidates, and of right answers of a model.

    python benchmarks/verdict_cost.py out/tiny                        # 60 lowered candidates, and the honest corpus
    python benchmarks/verdict_cost.py out/tiny --only lowered --number 20
    python benchmarks/verdict_cost.py out/tiny --only lowered --twice # again, with their kernels in the cache
    python benchmarks/verdict_cost.py out/tiny --record               # and write the figures

CPU time of this process, of the warm processes and of all guests counts, but not the start of the warm processes. The
cache of compiled kernels is empty at the beginning. Lowered candidates are those that the stage tidy kept, evenly
spread. The honest corpus counts as written by a model.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from executed import candidates as spread
from figures import ROOT, record

from kernelquarry.pipeline.graph import ALL, named
from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Candidate
from kernelquarry.transforms.verify import VerifySettings, verify

sys.path.append(str(ROOT / "tests"))
from corpus import load_cases

COMMAND = "python benchmarks/verdict_cost.py out/tiny"
KINDS = {
    "lowered": ("reference", "interpret", "perturbed", "compile", "codegen"),
    "model": ("reference", "interpret", "perturbed", "compile"),
}


def lowered(run: Path, number: int) -> list[Candidate]:
    """`number` candidates that the stage tidy kept."""
    place = ALL.index(named("tidy")) + 1
    return spread(run / "stages" / f"{place:02d}-tidy", number)


class Guests:
    """CPU seconds and number of guests by kind."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._lock, self._run = threading.Lock(), sandbox.run
        self.spent = defaultdict[str, list[float]](lambda: [0, 0.0])
        sandbox.run = self._counted  # type: ignore[method-assign]

    def _counted(self, job: Job) -> Report:
        report: Report = self._run(job)
        with self._lock:
            spent = self.spent[job.kind.name]
            spent[0] += 1
            spent[1] += report.cpu_s
        return report


def cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def start_s(kinds: Sequence[str], settings: SandboxSettings) -> float:
    """CPU seconds of starting and ending the warm processes."""
    before = cpu_s(resource.RUSAGE_CHILDREN)
    with Sandbox(settings) as sandbox:
        sandbox.start(kinds)
    return cpu_s(resource.RUSAGE_CHILDREN) - before


def measure(kind: str, found: Sequence[Candidate], settings: SandboxSettings) -> tuple[float, str]:
    """Core-seconds a candidate, and a note on their parts."""
    # Started once before it is measured, so that later starts find files and modules in memory.
    start_s(KINDS[kind], settings)
    started = start_s(KINDS[kind], settings)
    host, children = cpu_s(resource.RUSAGE_SELF), cpu_s(resource.RUSAGE_CHILDREN)
    work = partial(verify, settings=VerifySettings(find_counterexamples=False))
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(settings.workers) as threads:
        sandbox.start(KINDS[kind])
        guests = Guests(sandbox)
        outcomes = list(threads.map(lambda each: run_guarded(work, each, sandbox), found))
    host = cpu_s(resource.RUSAGE_SELF) - host
    total = host + cpu_s(resource.RUSAGE_CHILDREN) - children - started
    kept = sum(isinstance(outcome, Kept) for outcome in outcomes)
    for outcome in outcomes:
        if not isinstance(outcome, Kept):
            print(f"{kind}: {outcome}", flush=True)
    parts = [f"host {host / len(found):.3f}"]
    parts += [
        f"{name} {spent / len(found):.3f} in {count / len(found):.1f} guests"
        for name, (count, spent) in sorted(guests.spent.items(), key=lambda item: -item[1][1])
    ]
    return total / len(found), f"{kept} of {len(found)} kept; {', '.join(parts)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run directory that has the stage tidy")
    parser.add_argument("--only", choices=tuple(KINDS))
    parser.add_argument("--number", type=int, default=60, help="of lowered candidates")
    parser.add_argument("--twice", action="store_true", help="measure again with the kernels in the cache")
    parser.add_argument("--workers", type=int, default=2, help="guests at once")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    for kind in [args.only] if args.only else KINDS:
        found: list[Any] = (
            lowered(args.run, args.number) if kind == "lowered" else [case.candidate for case in load_cases("honest")]
        )
        with tempfile.TemporaryDirectory() as folder:
            settings = SandboxSettings(workers=args.workers, kernels=folder)
            value, note = measure(kind, found, settings)
            print(f"{kind}: {value:.3f} core-seconds a candidate: {note}", flush=True)
            if args.twice:
                print("{}, kernels in the cache: {:.3f}: {}".format(kind, *measure(kind, found, settings)), flush=True)
        if args.record:
            record(f"verdict.core_s.{kind}", value, COMMAND, note)


if __name__ == "__main__":
    main()
