"""Verifies candidates on this machine's GPUs, over and over, and writes what came of it.

    python benchmarks/executed.py out/tiny/stages/06-tidy --results runs.jsonl
    python benchmarks/executed.py out/tiny/stages/06-tidy --results runs.jsonl --round again     # does a verdict flip?
    python benchmarks/executed.py out/tiny/stages/06-tidy --results runs.jsonl --round guests --engine guest
    python benchmarks/executed.py --results runs.jsonl --record   # the figures of all rounds

A round goes on where it was stopped: a candidate that has a line in it is not verified again.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.figures import installed, machine, record
from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.executor.service import Execution
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Candidate, Engine, Verified
from kernelquarry.transforms.boundary import run_guarded
from kernelquarry.transforms.verify import VerifySettings, verify

Line = dict[str, Any]


def candidates(folder: Path, number: int) -> list[Candidate]:
    """`number` of the folder's, spread over all of them."""
    found = [c for path in sorted(folder.glob("kept-*.parquet")) for c in read_records(path, Candidate)]
    return found[:: max(1, len(found) // number)][:number]


class Clock:
    """Where the time of a round went: seconds and CPU seconds by kind of guest, waiting for a GPU and using it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._lock, self._spent = threading.Lock(), defaultdict[str, list[float]](lambda: [0, 0.0, 0.0])
        self._run, sandbox.run = sandbox.run, self._guest  # type: ignore[method-assign]
        if sandbox.gpus is not None:
            executor = sandbox.gpus
            self._execute, executor.run = executor.run, self._executor  # type: ignore[method-assign]

    def _guest(self, job: Job) -> Report:
        started = time.monotonic()
        report = self._run(job)
        self._add(job.kind, time.monotonic() - started, report.cpu_s)
        return report

    def _executor(self, request: Any, tensors: Any, wall_s: float) -> Execution:
        started = time.monotonic()
        execution = self._execute(request, tensors, wall_s)
        self._add("executor", time.monotonic() - started, execution.seconds)
        return execution

    def _add(self, kind: str, wall_s: float, busy_s: float) -> None:
        with self._lock:
            spent = self._spent[kind]
            spent[0] += 1
            spent[1] += wall_s
            spent[2] += busy_s

    def told(self) -> str:
        parts = (f"{k} {n:.0f} x {w / n:.2f} s, {b / n:.3f} s busy" for k, (n, w, b) in sorted(self._spent.items()))
        return "; ".join(parts)


def verified(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings) -> Line:
    started = time.monotonic()
    outcome: Outcome[Verified] = run_guarded(partial(verify, settings=settings), candidate, sandbox)
    line: Line = {"id": candidate.id, "seconds": round(time.monotonic() - started, 3), "end": time.time()}
    if isinstance(outcome, Kept):
        verdict = outcome.record.verdict
        return line | {"verdict": "kept", "engine": verdict.engine, "ratio": verdict.worst_ratio}
    return line | {"verdict": getattr(outcome, "reason", outcome), "evidence": str(outcome)[:600]}


def run(args: argparse.Namespace) -> None:
    done = {line["id"] for line in lines(args.results) if line["round"] == args.round}
    left = [c for c in candidates(args.candidates, args.number) if c.id not in done]
    targets = tuple(args.targets.split(",")) if args.targets else ()
    settings = VerifySettings(targets=targets, engine=Engine(args.engine) if args.engine else None)
    gpus = choose_gpus(args.gpus)
    with (
        Sandbox(SandboxSettings(workers=args.workers, gpus=gpus)) as sandbox,
        ThreadPoolExecutor(args.workers) as threads,
        args.results.open("a") as stream,
    ):
        where = machine(f"{len(gpus)} {sandbox.gpus.described.name}" if sandbox.gpus else "no GPU")
        stream.write(json.dumps({"round": args.round, "machine": where, "versions": installed()}) + "\n")
        list(threads.map(lambda c: verified(c, sandbox, settings), left[: args.workers]))  # warm processes start
        clock, host_s = Clock(sandbox), time.process_time()
        started, counts = time.monotonic(), Counter[str]()
        deadline = started + args.seconds
        work = (threads.submit(verified, c, sandbox, settings) for c in left)
        ahead = [next(work) for _ in left[: 2 * args.workers]]
        number = 0
        while ahead:
            line = ahead.pop(0).result()
            number += 1
            line["verdict"] = str(getattr(line["verdict"], "value", line["verdict"]))
            counts[line["verdict"]] += 1
            stream.write(json.dumps({"round": args.round, "gpus": len(gpus), "targets": len(targets), **line}) + "\n")
            stream.flush()
            if time.monotonic() < deadline and (following := next(work, None)) is not None:
                ahead.append(following)
            if number % 50 == 0 or not ahead:
                rate = number / (time.monotonic() - started)
                print(f"{number} of {len(left)}, {rate:.1f}/s: {dict(counts)}", flush=True)
        host_s = time.process_time() - host_s
        print(f"{clock.told()}; host {host_s / max(1, number):.3f} s busy", flush=True)


def lines(path: Path) -> Iterator[Line]:
    """Of candidates, each with its round's machine and versions."""
    where: dict[str, Line] = {}
    for line in map(json.loads, path.read_text().splitlines() if path.exists() else []):
        if "machine" in line:
            where[line["round"]] = line
        else:
            yield where[line["round"]] | line


def figures(path: Path) -> None:
    rounds: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in lines(path):
        rounds[line["round"]][line["id"]] = line
    command = "python benchmarks/executed.py"

    def write(figure: str, value: float, of: Line, note: str) -> None:
        print(figure, record(figure, value, command, note, of["machine"], of["versions"]).value, note)

    for name, of_round in rounds.items():
        kept = [line for line in of_round.values() if line["verdict"] == "kept"]
        traced = sum(line["engine"] == Engine.TRACE for line in kept)
        print(f"{name}: {len(kept)} of {len(of_round)} kept, {traced} of them by traces")
    if "first" in rounds:
        kept = [line for line in rounds["first"].values() if line["verdict"] == "kept"]
        share = 100 * sum(line["engine"] == Engine.TRACE for line in kept) / len(kept)
        write("verdict.trace_share.inductor", round(share, 2), kept[0], f"of {len(kept)} pairs")
    for figure, name, other in (("verdict.flips", "first", "again"), ("verdict.trace_vs_guest", "first", "guests")):
        both = rounds[name].keys() & rounds[other].keys()
        if both:
            differ = [id for id in both if rounds[name][id]["verdict"] != rounds[other][id]["verdict"]]
            for id in differ:
                print(f"{figure}: {id}", rounds[name][id], rounds[other][id], sep="\n  ")
            value = len(differ) if figure == "verdict.flips" else len(both) - len(differ)
            write(figure, value, next(iter(rounds[other].values())), f"of {len(both)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", type=Path, nargs="?", help="a folder of the stage tidy")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--round", default="first")
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no more after that")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--engine", choices=[engine.value for engine in Engine])
    parser.add_argument("--targets", default="")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.candidates:
        run(args)
    if args.record:
        figures(args.results)


if __name__ == "__main__":
    sys.exit(main())
