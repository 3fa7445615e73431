"""Measures what the verifier misses, on mutants of verified rows.

    python benchmarks/mutants.py                              # 2,000 mutants of out/tiny/dataset, 2 at a time
    python benchmarks/mutants.py --mutants 150 --rows 10      # a first look
    python benchmarks/mutants.py --record                     # also writes the figures, as `make bench` does
    python benchmarks/mutants.py --gpus all --workers 20 --processes 4 --judge    # on a GPU: the verdicts alone
    python benchmarks/mutants.py --finish --record            # then anywhere: witnesses against those that passed
    python benchmarks/mutants.py --finish --known FILE        # some of which an earlier run has sought, in that file

Results are appended to `--out` as JSON lines, and those that are there are not made again, as long as the
verifier is the same code. The summary lies beside them, with the suffix `.summary.json`. The search for a witness
interprets kernels, which takes longer than all verdicts; `--judge` leaves it to a later `--finish` of the same file.
A witness shows a mutant to be wrong whatever the verifier says: for another verifier it need not be sought again.
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
from pathlib import Path
from typing import Any

from figures import installed, machine, record
from rich.console import Console
from rich.table import Table
from witness import Fate, Finding, judge_mutant, search, try_mutant

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.mutate import Fault, Mutant, choose, diff
from kernelquarry.transforms.verify import VerifySettings

_CODE = "transforms.verify.verify_candidate"
_Z = 1.96  # of a two-sided interval of 95 %

console = Console()


@dataclass(frozen=True)
class Result:
    """A line of the results."""

    key: str  # of the mutant, and of the code that tried it
    pair: str
    operator: str
    fault: str
    line: int
    what: str
    fate: str
    reason: str
    evidence: str
    witness: dict[str, str] | None
    diff: str  # of survivors
    seconds: float
    machine: str  # that judged it
    versions: dict[str, str]


def wilson(good: int, total: int) -> tuple[float, float]:
    """The share of `good` in per cent: Wilson's interval of 95 %."""
    if not total:
        return 0.0, 100.0
    share, z2 = good / total, _Z**2 / total
    middle, half = share + z2 / 2, _Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total))
    return 100 * max(0.0, (middle - half) / (1 + z2)), 100 * min(1.0, (middle + half) / (1 + z2))


def read_found(path: Path) -> dict[str, Result]:
    """By key; lines of another release are left out."""
    names = {field.name for field in fields(Result)}
    return {line["key"]: Result(**line) for line in read_lines(path) if names == set(line)}


Way = Callable[[Pair, Mutant, Sandbox, VerifySettings], Finding]


@dataclass(frozen=True)
class Work:
    """A mutant to treat, and what was found about it before, if it was judged."""

    key: str
    pair: Pair
    mutant: Mutant
    before: Result | None = None

    def done(self, way: Way, sandbox: Sandbox, settings: VerifySettings) -> Result:
        started = time.monotonic()
        finding = way(self.pair, self.mutant, sandbox, settings)
        where = machine(sandbox.gpus.description.name if sandbox.gpus else "no GPU")
        return Result(
            key=self.key,
            pair=self.pair.id,
            operator=self.mutant.operator,
            fault=self.mutant.fault.value,
            line=self.mutant.line,
            what=self.mutant.what,
            fate=finding.fate.value,
            reason=finding.reason,
            evidence=finding.evidence,
            witness=asdict(finding.witness) if finding.witness else None,
            diff=diff(self.pair, self.mutant) if finding.fate in (Fate.MISSED, Fate.EQUIVALENT) else "",
            seconds=round(time.monotonic() - started, 3),
            machine=self.before.machine if self.before else where,
            versions=self.before.versions if self.before else installed(),
        )


class Progress:
    """How far the processes are, read from what they have written."""

    def __init__(self, keys: set[str], path: Path) -> None:
        self._keys, self._path, self._started = keys, path, time.monotonic()
        self._before = self._ended()

    def _ended(self) -> Counter[str]:
        return Counter(result.fate for key, result in read_found(self._path).items() if key in self._keys)

    def tell(self) -> None:
        fates = self._ended() - self._before
        rate = fates.total() / (time.monotonic() - self._started)
        left = (len(self._keys) - fates.total()) / rate / 60 if rate else math.inf
        counts = ", ".join(f"{fates[fate]} {fate}" for fate in Fate if fates[fate])
        line = f"{fates.total()}/{len(self._keys)}  {rate:.2f}/s  {left:.0f} min left  {counts}"
        console.print(line, highlight=False)


def take_over(work: Sequence[Work], known: Path, path: Path) -> list[Work]:
    """What of `work` is still to be sought: of the rest, `known` has a witness, or that there is none."""
    sought = {
        key.split()[0]: result
        for key, result in read_found(known).items()
        if result.fate in (Fate.MISSED, Fate.EQUIVALENT)
    }
    left = []
    for piece in work:
        if earlier := sought.get(piece.mutant.id):
            assert piece.before is not None
            finding = {"fate": earlier.fate, "witness": earlier.witness, "diff": earlier.diff}
            add_line(path, asdict(replace(piece.before, **finding)))
        else:
            left.append(piece)
    return left


def share(work: Sequence[Work], path: Path, way: Way, sandboxed: SandboxSettings, settings: VerifySettings) -> None:
    """One process's part: each result is appended to the file when it is there, in one write."""
    with Sandbox(sandboxed) as sandbox, ThreadPoolExecutor(sandboxed.workers) as threads:
        futures = [threads.submit(piece.done, way, sandbox, settings) for piece in work]
        try:
            for future in as_completed(futures):
                add_line(path, asdict(future.result()))
        finally:
            threads.shutdown(cancel_futures=True)


def measure(
    work: Sequence[Work],
    path: Path,
    way: Way,
    sandboxed: SandboxSettings,
    settings: VerifySettings,
    processes: int,
    seconds: float,
) -> None:
    """All work, by several processes; ends with what is there after `seconds`.

    Raises:
        SystemExit: a process failed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = replace(sandboxed, workers=max(1, sandboxed.workers // processes))
    context = multiprocessing.get_context("spawn")
    shares = [
        context.Process(target=share, args=(work[number::processes], path, way, part, settings))
        for number in range(processes)
    ]
    for process in shares:
        process.start()
    progress, end = Progress({piece.key for piece in work}, path), time.monotonic() + seconds
    while any(process.is_alive() for process in shares) and time.monotonic() < end:
        multiprocessing.connection.wait([process.sentinel for process in shares if process.is_alive()], timeout=20)
        progress.tell()
    late = [process for process in shares if process.is_alive()]
    for process in late:
        process.terminate()
    for process in shares:
        process.join()
    if failed := [process.exitcode for process in shares if process.exitcode and process not in late]:
        raise SystemExit(f"a process ended with {failed[0]}, see above; what was done is in {path}")


def class_table(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A line for each class, and one for all."""
    lines = []
    for name in (*Fault, "all"):
        fates = Counter(result.fate for result in results if name in (result.fault, "all"))
        killed, wrong = fates[Fate.KILLED], fates[Fate.KILLED] + fates[Fate.MISSED]
        low, high = wilson(killed, wrong)
        lines.append(
            {
                "class": str(name),
                **{str(fate): fates[fate] for fate in Fate},
                "rate": 100 * killed / wrong if wrong else None,
                "low": low,
                "high": high,
            }
        )
    return lines


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    survivors = [result for result in results if result.fate in (Fate.MISSED, Fate.EQUIVALENT)]
    shown = ("pair", "operator", "line", "what", "diff", "witness")
    return {
        "mutants": len(results),
        "rows": len({result.pair for result in results}),
        "fates": dict(Counter(result.fate for result in results)),
        "classes": class_table(results),
        "operators": {
            name: dict(sorted(Counter(result.fate for result in results if result.operator == name).items()))
            for name in sorted({result.operator for result in results})
        },
        "reasons": dict(Counter(result.reason for result in results if result.fate == Fate.KILLED).most_common()),
        **{
            str(fate): [{name: getattr(r, name) for name in shown} for r in survivors if r.fate == fate]
            for fate in (Fate.MISSED, Fate.EQUIVALENT)
        },
    }


def show(summary: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("class", "killed", "missed", "equivalent", "stillborn", "passed", "killed of wrong ones", "95 %"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for line in summary["classes"]:
        rate = "-" if line["rate"] is None else f"{line['rate']:.1f} %"
        counts = [str(line[fate]) for fate in Fate]
        table.add_row(line["class"], *counts, rate, f"{line['low']:.1f} to {line['high']:.1f}")
    console.print(table)
    console.print("killed by " + ", ".join(f"{reason} {count}" for reason, count in summary["reasons"].items()))
    for fate in (Fate.MISSED, Fate.EQUIVALENT):
        console.rule(f"{fate}: {len(summary[fate])}")
        for survivor in summary[fate]:
            console.print(f"{survivor['pair']} {survivor['operator']}", style="bold")
            console.print(survivor["diff"], markup=False, highlight=False)
            if survivor["witness"]:
                witness = survivor["witness"]
                text = f"witness: {witness['where']}: {witness['reason']}: {witness['evidence']}"
                console.print(text, markup=False, highlight=False)


def write_figures(summary: dict[str, Any], command: str, judged: Result, number: int) -> None:
    """`judged`: any of the results, which says where they were judged.

    Raises:
        SystemExit: some passed, and no witness was sought.
    """
    if passed := summary["fates"].get(Fate.PASSED, 0):
        raise SystemExit(f"{passed} mutants passed and wait for a witness: run with --finish first")
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
    parser.add_argument("--mutants", type=int, default=2000, help="how many, those not counted that run on no input")
    parser.add_argument("--rows", type=int, help="the first rows of the dataset alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpus", default="none", help="all, none, or numbers: mutants are executed on these")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after that, with what is there")
    parser.add_argument("--compile", action="store_true", help="also compile each for the targets of its row")
    parser.add_argument("--record", action="store_true", help="write the figures")
    parser.add_argument("--out", type=Path, default=Path("out/mutants.jsonl"))
    parser.add_argument("--judge", action="store_true", help="leave the search for witnesses to --finish")
    parser.add_argument("--finish", action="store_true", help="search witnesses against those in --out that passed")
    parser.add_argument("--known", type=Path, help="with --finish: results of another run, with the same mutants")
    parser.add_argument("--processes", type=int, default=1, help="that share the workers; one judges 2 a second")
    arguments = parser.parse_args()
    if arguments.known and not arguments.finish:
        parser.error("--known is for --finish")

    rows = {pair.id: pair for pair in list(read_rows(arguments.dataset))[: arguments.rows]}
    targets = VerifySettings().targets if arguments.compile else ()
    settings = VerifySettings(targets=targets, mutants=0, limits=Limits(wall_s=600, cpu_s=30))
    gpus = choose_gpus(arguments.gpus)
    spare = arguments.mutants // 10  # for those that are stillborn
    chosen = {mutant.id: mutant for mutant in choose(list(rows.values()), arguments.mutants + spare, arguments.seed)}
    before = read_found(arguments.out)
    if arguments.finish:
        keys = {key: chosen[key.split()[0]] for key in before if key.split()[0] in chosen}
        todo = [key for key in keys if before[key].fate == Fate.PASSED]
    else:
        code = Fingerprint.of(_CODE, bool(gpus)).key[:16]
        keys = {f"{mutant.id} {code} {','.join(targets)}": mutant for mutant in chosen.values()}
        todo = [key for key in keys if key not in before]
    work = [Work(key, rows[keys[key].pair], keys[key], before.get(key)) for key in todo]
    console.print(f"{len(keys)} mutants of {len(rows)} rows; {len(keys) - len(todo)} need nothing more")
    if arguments.known:
        work = take_over(work, arguments.known, arguments.out)
        console.print(f"{len(todo) - len(work)} of the others were sought before, as {arguments.known} says")

    way = search if arguments.finish else judge_mutant if arguments.judge else try_mutant
    sandboxed = SandboxSettings(workers=arguments.workers, gpus=gpus)
    measure(work, arguments.out, way, sandboxed, settings, arguments.processes, arguments.seconds)
    found = read_found(arguments.out)
    summary = summarise([found[key] for key in keys if key in found])
    show(summary)
    arguments.out.with_suffix(".summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if arguments.record:
        judged = next(iter(found.values()))
        on_gpu = not judged.machine.endswith("no GPU")
        command = f"python benchmarks/mutants.py --mutants {arguments.mutants} --seed {arguments.seed}"
        command += (" --compile" if targets else "") + (" --gpus all" if on_gpu else "") + " --record"
        write_figures(summary, command, judged, arguments.mutants)


if __name__ == "__main__":
    main()
