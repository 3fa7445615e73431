"""Measure which mistakes the verifier misses, on mutants of verified rows.

    python benchmarks/mutants.py                              # 2,000 mutants of out/tiny/dataset, 2 at a time
    python benchmarks/mutants.py --mutants 150 --rows 10      # a first look
    python benchmarks/mutants.py --record                     # also write the figures, as `make bench` does
    python benchmarks/mutants.py --gpus all --workers 20 --processes 4 --judge    # on a GPU: only verdicts
    python benchmarks/mutants.py --finish --record            # then anywhere: witnesses for those that passed
    python benchmarks/mutants.py --finish --known FILE        # reuse witnesses of an earlier run

Results are appended to `--out` as JSON lines. Mutants with a result by the same verifier code are not judged again.
The summary has the suffix `.summary.json`. The search for a witness interprets kernels, which takes longer than all
verdicts; `--judge` leaves the search to a later `--finish` of the same file. A witness proves that a mutant is wrong,
independently of the verifier, so `--known` can reuse it for another verifier.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import multiprocessing.connection
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from figures import installed, machine, record
from mutate import Fault, Mutant, choose, diff
from rich.console import Console
from rich.table import Table
from witness import SURVIVED, Finding, Outcome, judge_mutant, search, try_mutant

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.verify import VerifySettings

SETTINGS = VerifySettings(target="", limits=Limits(wall_s=600, cpu_s=30))
_Z = 1.96  # of a two-sided interval of 95 %

console = Console()


@dataclass(frozen=True)
class Result:
    """A line of the results."""

    key: str  # mutant and code of the verifier
    pair: str
    operator: str
    fault: str
    line: int
    what: str
    outcome: str
    reason: str
    evidence: str
    witness: dict[str, str] | None
    diff: str  # "" unless the mutant passed
    seconds: float
    machine: str  # that reached the verdict
    versions: dict[str, str]


def wilson(good: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % confidence interval of the share of `good`, in percent."""
    if not total:
        return 0.0, 100.0
    share, z2 = good / total, _Z**2 / total
    middle, half = share + z2 / 2, _Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total))
    return 100 * max(0.0, (middle - half) / (1 + z2)), 100 * min(1.0, (middle + half) / (1 + z2))


def read_results(path: Path) -> dict[str, Result]:
    """Results by key, without lines of other releases."""
    names = {field.name for field in fields(Result)}
    return {line["key"]: Result(**line) for line in read_lines(path) if names == set(line)}


Judge = Callable[[Pair, Mutant, Sandbox, VerifySettings], Finding]
W = TypeVar("W")
Run = Callable[[W, Sandbox], dict[str, Any]]  # the line of a piece of work


@dataclass(frozen=True)
class Work:
    """A mutant to judge or to find a witness for, and its earlier result if it has one."""

    key: str
    pair: Pair
    mutant: Mutant
    before: Result | None = None

    def run(self, judge: Judge, sandbox: Sandbox, settings: VerifySettings) -> Result:
        started = time.monotonic()
        finding = judge(self.pair, self.mutant, sandbox, settings)
        where = machine(sandbox.gpus.description.name if sandbox.gpus else "no GPU")
        return Result(
            key=self.key,
            pair=self.pair.id,
            operator=self.mutant.operator,
            fault=self.mutant.fault.value,
            line=self.mutant.line,
            what=self.mutant.what,
            outcome=finding.outcome.value,
            reason=finding.reason,
            evidence=finding.evidence,
            witness=asdict(finding.witness) if finding.witness else None,
            diff=diff(self.pair, self.mutant) if finding.outcome in SURVIVED else "",
            seconds=round(time.monotonic() - started, 3),
            machine=self.before.machine if self.before else where,
            versions=self.before.versions if self.before else installed(),
        )


def verifier_code(gpus: tuple[int, ...]) -> str:
    """A digest of the verifier's code, which a result holds for."""
    return Fingerprint.of("transforms.verify.verify_candidate", bool(gpus)).key[:16]


def count_outcomes(keys: set[str], path: Path) -> Counter[str]:
    return Counter(result.outcome for key, result in read_results(path).items() if key in keys)


def print_progress(outcomes: Counter[str], total: int, seconds: float) -> None:
    rate = outcomes.total() / seconds
    left = (total - outcomes.total()) / rate / 60 if rate else math.inf
    counts = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in Outcome if outcomes[outcome])
    console.print(f"{outcomes.total()}/{total}  {rate:.2f}/s  {left:.0f} min left  {counts}", highlight=False)


def reuse_witnesses(work: Sequence[Work], known: Path, path: Path) -> list[Work]:
    """Append to `path` the results of searches that `known` has; return the remaining work."""
    searched = {key.split()[0]: result for key, result in read_results(known).items() if result.outcome in SURVIVED}
    left = []
    for piece in work:
        if earlier := searched.get(piece.mutant.id):
            assert piece.before is not None
            finding = {"outcome": earlier.outcome, "witness": earlier.witness, "diff": earlier.diff}
            add_line(path, asdict(replace(piece.before, **finding)))
        else:
            left.append(piece)
    return left


def run_work(piece: Work, sandbox: Sandbox, judge: Judge, settings: VerifySettings) -> dict[str, Any]:
    return asdict(piece.run(judge, sandbox, settings))


def run_share(work: Sequence[W], path: Path, run: Run[W], sandboxed: SandboxSettings) -> None:
    """The work of one process, which appends each line to the file in one write."""
    with Sandbox(sandboxed) as sandbox, ThreadPoolExecutor(sandboxed.workers) as threads:
        futures = [threads.submit(run, piece, sandbox) for piece in work]
        try:
            for future in as_completed(futures):
                add_line(path, future.result())
        finally:
            threads.shutdown(cancel_futures=True)


def measure(
    work: Sequence[W],
    path: Path,
    run: Run[W],
    sandboxed: SandboxSettings,
    processes: int,
    seconds: float,
    progress: Callable[[float], None],
) -> None:
    """Append a line for each piece of work, made in several processes; stop them after `seconds`.

    `progress` is called with the seconds since the start, every 20 seconds.

    Raises:
        SystemExit: a process failed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = replace(sandboxed, workers=max(1, sandboxed.workers // processes))
    context = multiprocessing.get_context("spawn")
    shares = [
        context.Process(target=run_share, args=(work[number::processes], path, run, part))
        for number in range(processes)
    ]
    for process in shares:
        process.start()
    started = time.monotonic()
    while any(process.is_alive() for process in shares) and (left := started + seconds - time.monotonic()) > 0:
        sentinels = [process.sentinel for process in shares if process.is_alive()]
        multiprocessing.connection.wait(sentinels, timeout=min(20, left))
        progress(time.monotonic() - started)
    late = [process for process in shares if process.is_alive()]
    for process in late:
        process.terminate()
    for process in shares:
        process.join()
    if failed := [process.exitcode for process in shares if process.exitcode and process not in late]:
        raise SystemExit(f"a process exited with {failed[0]}, see above: finished results are in {path}")


def class_table(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row for each class of faults, and one for all."""
    lines = []
    for name in (*Fault, "all"):
        outcomes = Counter(result.outcome for result in results if name in (result.fault, "all"))
        killed, wrong = outcomes[Outcome.KILLED], outcomes[Outcome.KILLED] + outcomes[Outcome.MISSED]
        low, high = wilson(killed, wrong)
        lines.append(
            {
                "class": str(name),
                **{str(outcome): outcomes[outcome] for outcome in Outcome},
                "rate": 100 * killed / wrong if wrong else None,
                "low": low,
                "high": high,
            }
        )
    return lines


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    columns = ("pair", "operator", "line", "what", "diff", "witness")
    return {
        "mutants": len(results),
        "rows": len({result.pair for result in results}),
        "outcomes": dict(Counter(result.outcome for result in results)),
        "classes": class_table(results),
        "operators": {
            name: dict(sorted(Counter(result.outcome for result in results if result.operator == name).items()))
            for name in sorted({result.operator for result in results})
        },
        "reasons": dict(Counter(result.reason for result in results if result.outcome == Outcome.KILLED).most_common()),
        **{
            str(outcome): [{name: getattr(r, name) for name in columns} for r in results if r.outcome == outcome]
            for outcome in SURVIVED
        },
    }


def show(summary: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("class", "killed", "missed", "equivalent", "stillborn", "passed", "killed of wrong ones", "95 %"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for line in summary["classes"]:
        rate = "-" if line["rate"] is None else f"{line['rate']:.1f} %"
        counts = [str(line[outcome]) for outcome in Outcome]
        table.add_row(line["class"], *counts, rate, f"{line['low']:.1f} to {line['high']:.1f}")
    console.print(table)
    console.print("killed by " + ", ".join(f"{reason} {count}" for reason, count in summary["reasons"].items()))
    for outcome in SURVIVED:
        console.rule(f"{outcome}: {len(summary[outcome])}")
        for survivor in summary[outcome]:
            console.print(f"{survivor['pair']} {survivor['operator']}", style="bold")
            console.print(survivor["diff"], markup=False, highlight=False)
            if survivor["witness"]:
                witness = survivor["witness"]
                text = f"witness: {witness['where']}: {witness['reason']}: {witness['evidence']}"
                console.print(text, markup=False, highlight=False)


def write_figures(summary: dict[str, Any], command: str, judged: Result, number: int) -> None:
    """Write the figures, with the machine of any result, `judged`.

    Raises:
        SystemExit: a mutant passed, and its witness was not searched for.
    """
    if passed := summary["outcomes"].get(Outcome.PASSED, 0):
        raise SystemExit(f"{passed} mutants passed without a search for a witness: run with --finish first")
    figure = "verdict.mutants_killed" + ("" if judged.machine.endswith("no GPU") else ".gpu")
    lines = {line["class"]: line for line in summary["classes"]}
    for name, suffix in (("all", ""), (Fault.PRECISION.value, ".precision")):
        line = lines[name]
        wrong = line["killed"] + line["missed"]
        note = f"{line['killed']} of {wrong}; 95 %: {line['low']:.2f} to {line['high']:.2f}"
        record(f"{figure}{suffix}", line["rate"] or 0.0, command, note, judged.machine, judged.versions)
    whole = lines["all"]
    tried = whole["killed"] + whole["missed"] + whole["equivalent"]
    note = f"{whole['equivalent']} without a witness; {whole['stillborn']} more ran on no input at all"
    note += f"; ended before the {number:,}th" if tried < number else ""
    record(f"{figure}.mutants", tried, command, note, judged.machine, judged.versions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, default=Path("out/tiny/dataset"))
    parser.add_argument("--mutants", type=int, default=2000, help="number, without stillborn mutants")
    parser.add_argument("--rows", type=int, help="use only the first rows of the dataset")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpus", default="none", help="GPUs that execute mutants: all, none, or numbers")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--compile", action="store_true", help="also compile them")
    parser.add_argument("--record", action="store_true", help="write the figures")
    parser.add_argument("--out", type=Path, default=Path("out/mutants.jsonl"))
    parser.add_argument("--judge", action="store_true", help="only judge; search for witnesses later with --finish")
    parser.add_argument("--finish", action="store_true", help="search for witnesses of mutants in --out that passed")
    parser.add_argument("--known", type=Path, help="with --finish: results of an earlier run on the same mutants")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the workers")
    arguments = parser.parse_args()
    if arguments.known and not arguments.finish:
        parser.error("--known is for --finish")

    rows = {pair.id: pair for pair in list(read_rows(arguments.dataset))[: arguments.rows]}
    settings = replace(SETTINGS, target=None if arguments.compile else "")
    gpus = choose_gpus(arguments.gpus)
    spare = arguments.mutants // 10  # replacements for stillborn mutants
    chosen = {mutant.id: mutant for mutant in choose(list(rows.values()), arguments.mutants + spare, arguments.seed)}
    before = read_results(arguments.out)
    if arguments.finish:
        keys = {key: chosen[key.split()[0]] for key in before if key.split()[0] in chosen}
        todo = [key for key in keys if before[key].outcome == Outcome.PASSED]
    else:
        code = verifier_code(gpus)
        keys = {f"{mutant.id} {code} {'compiled' if arguments.compile else ''}": mutant for mutant in chosen.values()}
        todo = [key for key in keys if key not in before]
    work = [Work(key, rows[keys[key].pair], keys[key], before.get(key)) for key in todo]
    console.print(f"{len(keys)} mutants of {len(rows)} rows; {len(keys) - len(todo)} are done")
    if arguments.known:
        work = reuse_witnesses(work, arguments.known, arguments.out)
        console.print(f"{len(todo) - len(work)} searches of {arguments.known} are reused")

    judge = search if arguments.finish else judge_mutant if arguments.judge else try_mutant
    sandboxed = SandboxSettings(workers=arguments.workers, gpus=gpus)
    run = partial(run_work, judge=judge, settings=settings)
    pending = {piece.key for piece in work}
    earlier = count_outcomes(pending, arguments.out)

    def progress(seconds: float) -> None:
        print_progress(count_outcomes(pending, arguments.out) - earlier, len(pending), seconds)

    measure(work, arguments.out, run, sandboxed, arguments.processes, arguments.seconds, progress)
    results = read_results(arguments.out)
    summary = summarise([results[key] for key in keys if key in results])
    show(summary)
    arguments.out.with_suffix(".summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if arguments.record:
        judged = next(iter(results.values()))
        on_gpu = not judged.machine.endswith("no GPU")
        command = f"python benchmarks/mutants.py --mutants {arguments.mutants} --seed {arguments.seed}"
        command += (" --compile" if arguments.compile else "") + (" --gpus all" if on_gpu else "") + " --record"
        write_figures(summary, command, judged, arguments.mutants)


if __name__ == "__main__":
    main()
