"""Compose, read, mine, probe and deduplicate modules as a run does, and record how many are kept.

python benchmarks/compose.py [--number 1000] [--modules RUN] [--record]

The rate is modules per minute of two cores for composing, mining and probing, by the CPU time of all processes, so
that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import tempfile
import time
from pathlib import Path

from figures import record

from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.run.build import run_stage
from kernelquarry.pipeline.run.run import Run
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.sandbox import SandboxSettings

CORES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", type=Path, help="run whose probed modules are used too")
    parser.add_argument("--record", action="store_true", help="write the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "compose.toml")
        modules = f'modules = "{given.modules.resolve()}"\n' if given.modules else ""
        source.write_text(f"compose = {given.number}\nseed = {given.seed}\n{modules}")
        run = Run(Path(folder, "run"), str(source), Path(folder), Path(folder, "store"), SandboxSettings())
        started, cpu = time.monotonic(), _cpu_s()
        counts = _run(run, "read", "mine", "probe")
        wall_s, cpu_s = time.monotonic() - started, _cpu_s() - cpu
        counts |= _run(run, "deduplicate")
    for count in counts.values():
        print(count.summary(), dict(count.dropped))
    composed, probed, distinct = (counts[name].kept for name in ("read", "probe", "deduplicate"))
    rate = 60 * composed * CORES / cpu_s
    values = {
        "mine.compose_rate": rate,
        "mine.compose_rate.probed": 100 * probed / composed,
        "mine.compose_rate.near_duplicates": 100 * (1 - distinct / probed),
    }
    note = f"{composed} composed, {probed} probed, {distinct} distinct; {wall_s:.0f} s, {cpu_s:.0f} CPU s"
    print(note, {name: round(value, 1) for name, value in values.items()})
    if given.record:
        for name, value in values.items():
            record(name, value, f"python benchmarks/compose.py --number {given.number} --record", note)


def _run(run: Run, *names: str) -> dict[str, StageCounts]:
    stages = [stage for stage in STAGES if stage.name in names]
    return {
        count.stage: count
        for stage in stages
        for count in run_stage(run, stage, lambda *_: contextlib.nullcontext())[0].counts
    }


def _cpu_s() -> float:
    """CPU seconds of this process and of its ended child processes."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


if __name__ == "__main__":
    main()
