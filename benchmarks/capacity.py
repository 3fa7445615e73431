"""Cost of a build of any size: measured on finished runs, simulated on a fleet.

    python benchmarks/capacity.py measure out/layers out/tiny out/default   # -> docs/results/capacity.json
    python benchmarks/capacity.py check                  # simulates those runs, and prints the error
    python benchmarks/capacity.py plan                   # The Stack on a fleet -> docs/images/capacity.png
    python benchmarks/capacity.py plan --workers 100 --gpus 2 --torch-share 4

A stage's cost is linear: core seconds to start its processes, plus core seconds per record, fitted to the finished
runs. `simulate` models the machines. The plan names the numbers that were not measured here.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from figures import ROOT, measured, record
from simulate import Fleet, Simulated, Task, simulate

from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.runtime.fingerprint import StageManifest

MEASURED = ROOT / "docs" / "results" / "capacity.json"
PICTURE = ROOT / "docs" / "images" / "capacity.png"
SPREADS = ("probe", "lower", "tidy", "verify")  # over the cores of one machine; the others are one process there
BUSY = 0.8  # of its cores, by which a run was alone on its machine

GPU_CORES = 16  # beside each GPU
GPU_S = 0.045  # of an H100 for one candidate: `executed.py`


@dataclass(frozen=True, slots=True)
class Dataset:
    """Python files of a corpus. Sizes: Lozhkov et al., StarCoder 2 and The Stack v2, arXiv 2402.19173, table 1."""

    name: str
    files: float
    bytes: float
    fetched: bool  # one by one from the archive, since the table has ids alone


DATASETS = (Dataset("the-stack-dedup", 12.96e6, 64.30e9, False), Dataset("the-stack-v2-dedup", 56.93e6, 233.29e9, True))


@dataclass(frozen=True, slots=True)
class Assumed:
    """Parameters that are not measured here."""

    torch_share: float  # % of the files that mention torch
    latency_s: float  # of a request to the archive
    connections: int  # to the archive at once
    core_usd: float  # an hour
    gpu_usd: float  # an hour, its cores with it


@dataclass(frozen=True, slots=True)
class Measured:
    """A stage of a finished run."""

    run: str
    stage: str
    entered: int  # records that it was given
    kept: int
    core_s: float  # 0: not known
    seconds: float
    bytes: int  # of its shards
    cores: int


@dataclass(frozen=True, slots=True)
class Cost:
    start_s: float  # core seconds before the first record
    record_s: float  # core seconds
    bytes: float  # written, a record that entered
    kept: float  # records that leave, a record that entered


def last_figure(id: str) -> float:
    return next(figure.value for figure in reversed(measured()) if figure.id == id)


def measure(roots: Iterable[Path]) -> list[Measured]:
    found = []
    for root in roots:
        for path in sorted(root.glob("stages/*/stage.json")):
            manifest = StageManifest.read(path)
            if manifest is not None and manifest.stage in {stage.name for stage in STAGES}:
                size = sum(shard.stat().st_size for shard in path.parent.glob("*.parquet"))
                ends = manifest.counts[0].entered, manifest.counts[-1].kept
                row = Measured(
                    root.name, manifest.stage, *ends, manifest.core_s, manifest.seconds, size, os.cpu_count() or 1
                )
                found.append(row)
    return found


def read_measured() -> list[Measured]:
    return [Measured(**row) for row in json.loads(MEASURED.read_text())]


def fit(rows: list[Measured]) -> dict[str, Cost]:
    """The cost model of each stage. Shares and sizes are the largest run's; the fit minimises relative errors."""
    costs = {}
    for stage in STAGES:
        mine = sorted((row for row in rows if row.stage == stage.name and row.core_s), key=lambda row: row.entered)
        if not mine:
            continue
        largest, entered, core_s = (
            mine[-1],
            *(np.array([getattr(row, name) for row in mine]) for name in ("entered", "core_s")),
        )
        slope, start = np.polyfit(entered, core_s, 1, w=1 / core_s) if len(mine) > 1 else (core_s[0] / entered[0], 0.0)
        if start < 0:
            slope, start = core_s[-1] / entered[-1], 0.0
        costs[stage.name] = Cost(
            float(start), float(slope), largest.bytes / largest.entered, largest.kept / largest.entered
        )
    return costs


def of_run(rows: list[Measured], costs: dict[str, Cost]) -> list[Task]:
    """Tasks of one finished run, with costs fitted to all measured runs."""
    return [
        Task(
            row.stage,
            row.entered,
            costs[row.stage].record_s,
            costs[row.stage].start_s,
            at_once=None if row.stage in SPREADS else 1,
        )
        for row in rows
    ]


def check(rows: list[Measured], dry: bool) -> None:
    """Print measured and simulated seconds of the runs that had their machine to themselves."""
    costs, worst = fit(rows), 0.0
    lines = []
    for name in dict.fromkeys(row.run for row in rows):
        run = [row for row in rows if row.run == name and row.stage in costs]
        heavy = [row for row in run if row.stage in SPREADS]
        busy = sum(row.core_s for row in heavy) / sum(row.seconds * row.cores for row in heavy)
        if 0 < busy < BUSY:
            print(f"{name}: {busy:.0%} of its cores busy: shared its machine, and is not compared")
            continue
        simulated = simulate(of_run(run, costs), Fleet(workers=run[0].cores, gpus=0, gpu_cores=0))
        took, expected = sum(row.seconds for row in run), simulated.seconds
        error = 100 * (expected / took - 1)
        lines.append(f"{name}: {took:.0f} s measured, {expected:.0f} s simulated ({error:+.1f} %)")
        worst = max(worst, abs(error))
        print(lines[-1])
        for row in run:
            if row.seconds > 10:
                print(f"  {row.stage:14} {row.seconds:7.0f} {simulated.spans[row.stage]:7.0f}")
    if not dry:
        record("scale.simulation", worst, "python benchmarks/capacity.py check", "; ".join(lines))


def plan(rows: list[Measured], fleet: Fleet, assumed: Assumed) -> None:
    costs = fit(rows)
    print_costs(rows, costs)
    for dataset in DATASETS:
        tasks = of_dataset(dataset, costs, assumed, last_figure("verdict.trace_rate"))
        simulated = simulate(tasks, fleet)
        print_plan(dataset, tasks, simulated, fleet, assumed)
    draw(simulated, f"{dataset.name}, {fleet.workers:,} workers and {fleet.gpus} GPUs")


def of_dataset(dataset: Dataset, costs: dict[str, Cost], assumed: Assumed, trace_rate: float) -> list[Task]:
    """The work of a whole dataset. Files that do not mention torch are only read; others pass as in the largest run."""
    fetch = assumed.latency_s if dataset.fetched else 0.0
    scan_s = 1 / (1e6 * last_figure("mine.speed.others")) * dataset.bytes / dataset.files
    tasks = [
        Task(
            "scan", dataset.files, scan_s, bundle=10_000, waits_s=fetch, at_once=assumed.connections if fetch else None
        )
    ]
    records = dataset.files * assumed.torch_share / 100
    for stage in STAGES:
        cost = costs.get(stage.name)
        if cost is None:
            continue
        start_s = cost.start_s if stage.name in SPREADS else 0.0
        tasks.append(Task(stage.name, records, cost.record_s, start_s, bytes=cost.bytes * records))
        if stage.name == "verify":
            tasks.append(Task("execute", records, GPU_CORES / trace_rate, bundle=10, gpu_s=GPU_S))
        records *= cost.kept
    return tasks


def print_costs(rows: list[Measured], costs: dict[str, Cost]) -> None:
    names = list(dict.fromkeys(row.run for row in rows if row.core_s))
    at = {(row.run, row.stage): row for row in rows}
    print(
        "| stage | "
        + " | ".join(f"{name}: records | core-s a record" for name in names)
        + " | to start | a record | KB | kept |"
    )
    print("|---|" + "---:|" * (2 * len(names) + 4))
    for stage, cost in costs.items():
        cells = []
        for name in names:
            row = at.get((name, stage))
            cells += [f"{row.entered:,}", f"{row.core_s / row.entered:.3f}"] if row is not None else ["", ""]
        cells += [f"{cost.start_s:.1f}", f"{cost.record_s:.4f}", f"{cost.bytes / 1e3:.1f}", f"{cost.kept:.2f}"]
        print(f"| {stage} | {' | '.join(cells)} |")


def print_plan(dataset: Dataset, tasks: list[Task], simulated: Simulated, fleet: Fleet, assumed: Assumed) -> None:
    print(f"\n{dataset.name}: {dataset.files / 1e6:.2f} million files, {dataset.bytes / 1e9:.0f} GB")
    print("| stage | records | core-hours | GPU-hours | GB | minutes |\n|---|---:|---:|---:|---:|---:|")
    cores = gpus = 0.0
    for task in tasks:
        core_h = task.records * task.record_s / 3600
        gpu_h = task.records * task.record_s / fleet.gpu_cores / 3600 if task.gpu_s else 0.0
        cores, gpus = cores + (0.0 if task.gpu_s else core_h), gpus + gpu_h
        written, minutes = task.bytes / 1e9, simulated.spans[task.name] / 60
        print(f"| {task.name} | {task.records:,.0f} | {core_h:,.1f} | {gpu_h:.1f} | {written:.1f} | {minutes:.1f} |")
    worst = max(simulated.spans, key=simulated.spans.__getitem__)
    used = cores * assumed.core_usd + gpus * assumed.gpu_usd
    hours = simulated.seconds / 3600
    held = hours * (fleet.workers * assumed.core_usd + fleet.gpus * assumed.gpu_usd)
    print(f"{hours:.2f} hours; bottleneck {worst} ({simulated.spans[worst] / simulated.seconds:.0%} of the time)")
    print(f"workers {simulated.busy_workers:.0%} busy, GPUs {simulated.busy_gpus:.1%}")
    print(f"${used:,.0f} used, ${held:,.0f} if all are held")


def draw(simulated: Simulated, title: str) -> None:
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, sharex=True, figsize=(9, 5.5), layout="constrained")
    minutes = np.array(simulated.times) / 60
    above.plot(minutes, 100 * np.array(simulated.workers), label="workers busy")
    above.plot(minutes, 100 * np.array(simulated.gpus), label="GPUs busy")
    above.set(ylabel="%", ylim=(0, 107))
    figure.suptitle(title)
    below.plot(minutes, simulated.waiting, label="bundles that wait for a worker")
    below.plot(minutes, simulated.waiting_gpu, label="tens of candidates that wait for a core beside a GPU")
    below.set(ylabel="queue", xlabel="minutes", yscale="symlog", ylim=(0, None))
    ended = 0.0
    for name, seconds in simulated.spans.items():
        if seconds > 0.05 * simulated.seconds:
            above.text((ended + seconds / 2) / 60, 108, name, ha="center", va="bottom", fontsize=8)
        ended += seconds
        for axis in (above, below):
            axis.axvline(ended / 60, color="0.85", linewidth=0.8, zorder=0)
    for axis in (above, below):
        axis.legend(loc="lower left" if axis is below else "center left", fontsize=8)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "check", "plan"))
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--workers", type=int, default=1000, help="of one core each")
    parser.add_argument("--gpus", type=int, default=64, help=f"each with {GPU_CORES} cores")
    parser.add_argument("--torch-share", type=float, default=2.0, help="%% of files that mention torch")
    parser.add_argument("--latency", type=float, default=0.1, help="seconds of a request to the archive")
    parser.add_argument("--connections", type=int, default=1024, help="to the archive at once")
    parser.add_argument("--core-usd", type=float, default=0.04, help="an hour")
    parser.add_argument("--gpu-usd", type=float, default=2.50, help="an hour")
    parser.add_argument("--dry", action="store_true", help="record no figure")
    given = parser.parse_args()
    match given.what:
        case "measure":
            MEASURED.write_text(json.dumps([asdict(row) for row in measure(given.runs)], indent=1) + "\n")
        case "check":
            check(read_measured(), given.dry)
        case _:
            assumed = Assumed(given.torch_share, given.latency, given.connections, given.core_usd, given.gpu_usd)
            plan(read_measured(), Fleet(given.workers, given.gpus, GPU_CORES), assumed)


if __name__ == "__main__":
    main()
