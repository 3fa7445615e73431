"""Verify candidates on this machine's GPUs in several rounds, and record verdicts and timings.

    python benchmarks/executed.py out/tiny/stages/*-tidy --results runs.jsonl
    python benchmarks/executed.py out/tiny/stages/*-tidy --results runs.jsonl --rounds first again guests
    taskset -c 0-15 python benchmarks/executed.py out/tiny/stages/*-tidy --results runs.jsonl --gpus 0
    python benchmarks/executed.py out/tiny/stages/*-tidy --results runs.jsonl --rounds again  # on all GPUs and cores
    python benchmarks/executed.py out/tiny/stages/*-tidy --results runs.jsonl --rounds interpreted --gpus none
    python benchmarks/executed.py out/tiny/stages/*-tidy --results runs.jsonl --rounds first warm
    python benchmarks/executed.py --results runs.jsonl --record    # the figures

Compiled kernels are kept next to the results, in `RESULTS.kernels`, a folder that must be empty before "first". "warm"
verifies the candidates of "first" a second time, with their kernels in the cache. The round "again" uses no cache. It
shows verdicts that flip and, with more GPUs than "first", the speedup. In "guests" all candidates run
in GPU guests. "interpreted" repeats the candidates that "first" rejected, on any machine: a candidate that the
interpreter rejects too was not rejected wrongly by the GPU. A stopped round resumes. One host process keeps up with six
candidates a second, so there are several (`--processes`), each with an executor. No counter-examples are searched for:
they do not decide the verdict.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

from figures import installed, machine, record

from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.executor.service import Execution
from kernelquarry.pipeline.sandbox.kernel_cache import KernelCache
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import Candidate, Engine, Verified
from kernelquarry.transforms.verify import VerifySettings, verify

COMMAND = "python benchmarks/executed.py"
KERNELBENCH = 0.237  # samples a second of KernelBench's own evaluator, one H100 and 16 cores, 2026-11-21
Line = dict[str, Any]
_FOR_GPU = ("trace", "compile", "codegen", "execute")  # guests that compile for a GPU, or use one
_APART_S = 5.0  # between the beginnings of two runs; processes of one begin together


class Clock:
    """Time of a process: wall and busy seconds by kind of guest, and of the executor."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._lock, self._spent = threading.Lock(), defaultdict[str, list[float]](lambda: [0, 0.0, 0.0])
        self._for_gpu = list[tuple[float, float]]()  # when an executor executed, or a guest compiled for it
        self._run, sandbox.run = sandbox.run, self._guest  # type: ignore[method-assign]
        if sandbox.gpus is not None:
            executor = sandbox.gpus
            self._execute, executor.run = executor.run, self._executor  # type: ignore[method-assign]

    def stop(self, sandbox: Sandbox) -> None:
        """Stop counting."""
        sandbox.run = self._run  # type: ignore[method-assign]
        if sandbox.gpus is not None:
            sandbox.gpus.run = self._execute  # type: ignore[method-assign]

    def _guest(self, job: Job) -> Report:
        started = time.monotonic()
        report = self._run(job)
        self._add(job.kind.name, time.monotonic() - started, report.cpu_s, job.kind.name in _FOR_GPU)
        return report

    def _executor(self, request: Any, tensors: Any, wall_s: float) -> Execution:
        started = time.monotonic()
        execution = self._execute(request, tensors, wall_s)
        self._add("executor", time.monotonic() - started, execution.seconds, True)
        return execution

    def _add(self, kind: str, wall_s: float, busy_s: float, for_gpu: bool) -> None:
        end = time.time()
        with self._lock:
            if for_gpu:
                self._for_gpu.append((end - wall_s, end))
            spent = self._spent[kind]
            spent[0] += 1
            spent[1] += wall_s
            spent[2] += busy_s

    def for_gpu(self) -> list[tuple[float, float]]:
        """Time spans in which a guest works for the GPU or an executor runs."""
        return merged(self._for_gpu)

    def executing(self) -> float:
        """Busy seconds of the executors."""
        return self._spent["executor"][2] if "executor" in self._spent else 0.0

    def summary(self) -> str:
        parts = (f"{k} {n:.0f} x {w / n:.2f} s, {b / n:.3f} s busy" for k, (n, w, b) in sorted(self._spent.items()))
        return "; ".join(parts)


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of time spans, as disjoint spans."""
    found = list[tuple[float, float]]()
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def is_rejected(line: Line) -> bool:
    return bool(line["verdict"] != "kept")


def candidates(folder: Path, number: int) -> list[Candidate]:
    """`number` candidates of the folder, evenly spread."""
    found = [c for path in sorted(folder.glob("kept-*.parquet")) for c in read_records(path, Candidate)]
    return found[:: max(1, len(found) // number)][:number]


def verified(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings) -> Line:
    started = time.monotonic()
    outcome: Outcome[Verified] = run_guarded(partial(verify, settings=settings), candidate, sandbox)
    line: Line = {"id": candidate.id, "seconds": round(time.monotonic() - started, 3), "end": time.time()}
    if isinstance(outcome, Kept):
        verdict = outcome.record.verdict
        return line | {"verdict": "kept", "engine": verdict.engine, "ratio": verdict.worst_ratio}
    code = outcome.reason.value if isinstance(outcome, Dropped) else "errored"
    return line | {"verdict": code, "evidence": str(outcome)[:600]}


def part(args: argparse.Namespace, number: int, barrier: Any) -> None:
    """Run one process's share of all rounds, and append lines to the results."""
    gpus, workers = choose_gpus(args.gpus), max(1, args.workers // args.processes)
    gpus = gpus[number % len(gpus) :][:1] if gpus and args.processes > 1 else gpus
    kernels = f"{args.results}.kernels"
    with (
        Sandbox(SandboxSettings(workers, kernels=kernels, gpus=gpus)) as sandbox,
        ThreadPoolExecutor(workers) as threads,
    ):
        running = ("trace", "execute") if gpus else ("interpret",)
        sandbox.start(("reference", "codegen", *running, *(("compile",) if args.target else ())))
        cached = sandbox.kernels
        for name in args.rounds:
            done = {line["id"] for line in lines(args.results) if line["round"] == name}
            rejected = {line["id"] for line in lines(args.results) if line["round"] == "first" and is_rejected(line)}
            barrier.wait(600)  # all have read what was done
            left = [c for c in candidates(args.candidates, args.number) if c.id not in done]
            if name == "interpreted":
                left = [c for c in left if c.id in rejected]
            left = left[number :: args.processes]
            work = Round(name, args, sandbox, threads)
            sandbox.kernels = KernelCache(None)
            list(threads.map(work.verified, left[:workers]))  # what is made at the first use is there
            sandbox.kernels = cached if name in ("first", "warm") else KernelCache(None)
            barrier.wait(600)
            work.run(left, args.results)
            print(f"process {number}, {name}: {work.summary()}", flush=True)


class Round:
    """One process's share of a round."""

    def __init__(self, name: str, args: argparse.Namespace, sandbox: Sandbox, threads: ThreadPoolExecutor) -> None:
        self._name, self._sandbox, self._threads = name, sandbox, threads
        self._gpus = len(choose_gpus(args.gpus))
        self._seconds, self._ahead = args.seconds, 2 * max(1, args.workers // args.processes)
        self._settings = VerifySettings(
            target=args.target,
            find_counterexamples=False,
            engine=Engine.GUEST if name == "guests" else None,
        )
        self._counts: Counter[str] = Counter()

    def verified(self, candidate: Candidate) -> Line:
        return verified(candidate, self._sandbox, self._settings)

    def run(self, left: list[Candidate], results: Path) -> None:
        """Verify candidates in parallel, and yield results in order of completion."""
        self._clock, self._host_s = Clock(self._sandbox), time.process_time()
        gpu = self._sandbox.gpus.description.name if self._sandbox.gpus else "no GPU"
        about = {"machine": machine(gpu), "versions": installed(), "target": self._settings.target}
        about |= {"cores": len(os.sched_getaffinity(0)), "gpus": self._gpus}
        add_line(results, {"round": self._name, **about, "begin": time.time()})
        deadline = time.monotonic() + self._seconds
        work = (self._threads.submit(self.verified, candidate) for candidate in left)
        waiting = set(itertools.islice(work, self._ahead))
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for line in (future.result() for future in ended):
                self._counts[line["verdict"]] += 1
                add_line(results, {"round": self._name, **line})
            if time.monotonic() < deadline:
                waiting |= set(itertools.islice(work, len(ended)))
        self._clock.stop(self._sandbox)
        add_line(results, {"round": self._name, "busy": self._clock.for_gpu(), "executing": self._clock.executing()})

    def summary(self) -> str:
        host_s = (time.process_time() - self._host_s) / max(1, self._counts.total())
        return f"{dict(self._counts)}; {self._clock.summary()}; host {host_s:.3f} s busy"


def lines(path: Path) -> Iterator[Line]:
    """Lines of candidates, each with the data of its round."""
    about: dict[str, Line] = {}
    for line in read_lines(path):
        if "machine" in line:
            about[line["round"]] = line
        elif "id" in line:
            yield about[line["round"]] | line


def runs(path: Path, name: str) -> list[tuple[float, float, int]]:
    """(start, end, number of verdicts) of each run of a round; a stopped and continued round has several runs."""
    of_round = [line for line in read_lines(path) if line["round"] == name]
    begins = sorted(line["begin"] for line in of_round if "begin" in line)
    starts = [at for before, at in zip([0.0, *begins], begins, strict=False) if at - before > _APART_S]
    found = []
    for start, following in zip(starts, [*starts[1:], float("inf")], strict=True):
        ends = [line["end"] for line in of_round if "end" in line and start < line["end"] < following]
        found.append((start, max(ends, default=start + 1), len(ends)))
    return found


def rate(path: Path, name: str) -> tuple[float, int]:
    """Candidates per second in the longest run, and their number."""
    begin, end, number = max(runs(path, name), key=lambda run: run[2])
    return number / (end - begin), number


def busy(path: Path, name: str) -> tuple[float, float]:
    """(share of the time with a GPU executing or compiling for it, share with a GPU executing) of complete runs."""
    timed = [line for line in read_lines(path) if line["round"] == name and line.get("busy")]
    spans = merged(tuple(span) for line in timed for span in line["busy"])
    whole = [(begin, end) for begin, end, _ in runs(path, name) if any(begin < last <= end for _, last in spans)]
    inside = sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in whole for first, last in spans)
    seconds = sum(end - begin for begin, end in whole)
    return inside / seconds, sum(line["executing"] for line in timed) / seconds


def rounds(path: Path) -> dict[str, dict[str, Line]]:
    found: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in lines(path):
        found[line["round"]][line["id"]] = line
    for name, of_round in found.items():
        verdicts = Counter(line["verdict"] for line in of_round.values())
        engines = Counter(line["engine"] for line in of_round.values() if "engine" in line)
        print(f"{name}: {len(of_round)} at {rate(path, name)[0]:.2f}/s; {dict(verdicts)}; {dict(engines)}", flush=True)
    return found


def figures(path: Path) -> None:
    found = rounds(path)
    if "first" in found:
        first_figures(path, found)
        if "again" in found:
            scaling(path, *(next(iter(found[name].values())) for name in ("first", "again")))


def scaling(path: Path, one: Line, every: Line) -> None:
    """Record the speedup of "again" over "first", if "again" had more GPUs."""
    if every["gpus"] > one["gpus"]:
        slow, fast = rate(path, "first")[0], rate(path, "again")[0]
        notes = [
            f"{n:.2f} a second on {of['gpus']} GPUs and {of['cores']} cores" for n, of in ((slow, one), (fast, every))
        ]
        share = 100 * fast / slow * one["gpus"] / every["gpus"]
        write("verdict.gpu_scaling", share, every, ", ".join(notes))


def first_figures(path: Path, found: dict[str, dict[str, Line]]) -> None:
    """Record the figures of the round "first", compared with the other rounds."""
    first = list(found["first"].values())
    kept = [line for line in first if line["verdict"] == "kept"]
    traced = [line for line in kept if line["engine"] == Engine.TRACE]
    write("verdict.trace_share.inductor", 100 * len(traced) / len(kept), first[0], f"of {len(kept)} pairs")
    if "interpreted" in found:
        both = {line["id"] for line in found["interpreted"].values() if is_rejected(line)}
        wrong = [line for line in first if is_rejected(line) and line["id"] not in both]
        counted = len(first) - len(both)
        note = f"{len(wrong)} of {counted}, those left out that the interpreter rejects too ({len(both)}): "
        note += "; ".join(f"{line['id']} {line['verdict']}" for line in wrong)
        write("verdict.false_rejects.inductor", 100 * len(wrong) / counted, first[0], note)
    per_second, number = rate(path, "first")
    write("verdict.trace_rate", per_second, first[0], f"over {number} candidates; compiled for this GPU alone")
    if "warm" in found:
        warm, number = rate(path, "warm")
        write("verdict.trace_rate.warm", warm, first[0], f"over {number} candidates, kernels in the cache")
    either, executing = busy(path, "first")
    write("scale.gpu_busy", 100 * either, first[0], f"executing, or compiled for; executing alone {executing:.1%}")
    note = f"{KERNELBENCH} a second, measured apart on such a machine"
    write("verdict.trace_rate.over_kernelbench", per_second / KERNELBENCH, first[0], note)
    if "guests" in found:
        guests = next(iter(found["guests"].values()))
        per_second, number = rate(path, "guests")
        write("verdict.guest_rate", per_second, guests, f"over {number} candidates")
    for figure, other in (("verdict.flips", "again"), ("verdict.trace_vs_guest", "guests")):
        both = found["first"].keys() & found.get(other, {}).keys()
        differ = [id for id in both if found["first"][id]["verdict"] != found[other][id]["verdict"]]
        for id in differ:
            print(f"{figure}: {id}", found["first"][id], found[other][id], sep="\n  ")
        if both:
            value = len(differ) if figure == "verdict.flips" else len(both) - len(differ)
            write(figure, value, next(iter(found[other].values())), f"of {len(both)}")


def write(figure: str, value: float, of: Line, note: str) -> None:
    print(figure, record(figure, value, COMMAND, note, of["machine"], of["versions"]).value, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", type=Path, nargs="?", help="a folder of the stage tidy")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--rounds", nargs="+", default=["first"])
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of a round, after which no more is begun")
    parser.add_argument("--workers", type=int, default=16, help="guests at once")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--target", default="", help="compile for it, too")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.candidates:
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(args.processes)
        parts = [context.Process(target=part, args=(args, number, barrier)) for number in range(args.processes)]
        for process in parts:
            process.start()
        for process in parts:
            process.join()
        rounds(args.results)
    if args.record:
        figures(args.results)


if __name__ == "__main__":
    main()
