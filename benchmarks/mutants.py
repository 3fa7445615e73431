"""Measures what the verifier misses, on mutants of verified rows.

    python benchmarks/mutants.py                              # 2,000 mutants of out/tiny/dataset, 2 at a time
    python benchmarks/mutants.py --mutants 150 --rows 10      # a first look
    python benchmarks/mutants.py --record                     # also writes the figures, as `make bench` does

Results are appended to `--out` as JSON lines, and those that are there are not made again, as long as the
verifier is the same code. The summary lies beside them, with the suffix `.summary.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from kernelquarry.pipeline.figures import machine, record
from kernelquarry.pipeline.manifest import fingerprint
from kernelquarry.pipeline.rows import read_rows
from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.mutate import Fault, Mutant, choose, diff
from kernelquarry.transforms.mutate.witness import Fate, try_mutant
from kernelquarry.transforms.verify import VerifySettings

_CODE = ("transforms.verify", "transforms.mutate", "pipeline.sandbox")
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


def wilson(good: int, total: int) -> tuple[float, float]:
    """The share of `good` in per cent: Wilson's interval of 95 %."""
    if not total:
        return 0.0, 100.0
    share, z2 = good / total, _Z**2 / total
    middle, half = share + z2 / 2, _Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total))
    return 100 * max(0.0, (middle - half) / (1 + z2)), 100 * min(1.0, (middle + half) / (1 + z2))


def read_results(path: Path) -> dict[str, Result]:
    """By key. A last line that was cut off is left out."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            result = Result(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue
        found[result.key] = result
    return found


def attempt(pair: Pair, mutant: Mutant, key: str, sandbox: Sandbox, settings: VerifySettings) -> Result:
    started = time.monotonic()
    finding = try_mutant(pair, mutant, sandbox, settings)
    return Result(
        key=key,
        pair=pair.id,
        operator=mutant.operator,
        fault=mutant.fault.value,
        line=mutant.line,
        what=mutant.what,
        fate=finding.fate.value,
        reason=finding.reason,
        evidence=finding.evidence,
        witness=asdict(finding.witness) if finding.witness else None,
        diff=diff(pair, mutant) if finding.fate in (Fate.MISSED, Fate.EQUIVALENT) else "",
        seconds=round(time.monotonic() - started, 3),
    )


def measure(
    work: Sequence[tuple[str, Pair, Mutant]], path: Path, sandboxed: SandboxSettings, settings: VerifySettings
) -> Iterator[Result]:
    """The result of each piece of work, in the order in which they end, each appended to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("a") as stream,
        Sandbox(sandboxed) as sandbox,
        ThreadPoolExecutor(sandboxed.workers) as threads,
    ):
        if stream.tell() and not path.read_text().endswith("\n"):
            stream.write("\n")  # the last run was cut off
        futures = [threads.submit(attempt, pair, mutant, key, sandbox, settings) for key, pair, mutant in work]
        try:
            for future in as_completed(futures):
                result = future.result()
                stream.write(json.dumps(asdict(result)) + "\n")
                stream.flush()
                yield result
        finally:
            threads.shutdown(cancel_futures=True)


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
    for name in ("class", "killed", "missed", "equivalent", "stillborn", "killed of wrong ones", "95 %"):
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


def write_figures(summary: dict[str, Any], command: str, gpu: str, number: int) -> None:
    """`gpu`: name of the one that executed them, "" if they were interpreted."""
    figure, where = f"verdict.mutants_killed{'.gpu' if gpu else ''}", machine(gpu or "no GPU")
    lines = {line["class"]: line for line in summary["classes"]}
    for name, suffix in (("all", ""), (Fault.PRECISION.value, ".precision")):
        line = lines[name]
        wrong = line["killed"] + line["missed"]
        note = f"{line['killed']} of {wrong}; 95 %: {line['low']:.2f} to {line['high']:.2f}"
        record(f"{figure}{suffix}", line["rate"] or 0.0, command, note, where)
    whole = lines["all"]
    tried = whole["killed"] + whole["missed"] + whole["equivalent"]
    note = f"{whole['equivalent']} without a witness; {whole['stillborn']} more ran on no input at all"
    note += f"; ended before the {number:,}th" if tried < number else ""
    record(f"{figure}.mutants", tried, command, note, where)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, default=Path("out/tiny/dataset"))
    parser.add_argument("--mutants", type=int, default=2000, help="how many, those not counted that run on no input")
    parser.add_argument("--rows", type=int, help="the first rows of the dataset alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpus", default="none", help="all, none, or numbers: mutants are executed on these")
    parser.add_argument("--seconds", type=float, help="end after that, with what is there")
    parser.add_argument("--compile", action="store_true", help="also compile each for the targets of its row")
    parser.add_argument("--record", action="store_true", help="write the figures")
    parser.add_argument("--out", type=Path, default=Path("out/mutants.jsonl"))
    arguments = parser.parse_args()

    rows = {pair.id: pair for pair in list(read_rows(arguments.dataset))[: arguments.rows]}
    targets = VerifySettings().targets if arguments.compile else ()
    settings = VerifySettings(targets=targets, mutants=0, limits=Limits(wall_s=600, cpu_s=30))
    gpus = choose_gpus(arguments.gpus)
    sandboxed = SandboxSettings(workers=arguments.workers, gpus=gpus)
    code = fingerprint(_CODE, ("torch", "triton", "numpy"), bool(gpus))[:16]
    spare = arguments.mutants // 10  # for those that are stillborn
    chosen = choose(list(rows.values()), arguments.mutants + spare, arguments.seed)
    keys = {f"{mutant.id} {code} {','.join(targets)}": mutant for mutant in chosen}
    done = {key: result for key, result in read_results(arguments.out).items() if key in keys}
    work = [(key, rows[mutant.pair], mutant) for key, mutant in keys.items() if key not in done]
    console.print(f"{len(keys)} mutants of {len(rows)} rows; {len(done)} tried before")

    started = time.monotonic()
    for ended, result in enumerate(measure(work, arguments.out, sandboxed, settings), 1):
        done[result.key] = result
        if ended % 10 == 0 or ended == len(work):
            fates = Counter(found.fate for found in done.values())
            rate = ended / (time.monotonic() - started)
            counts = ", ".join(f"{fates[fate]} {fate}" for fate in Fate)
            left = (len(work) - ended) / rate / 60
            console.print(f"{len(done)}/{len(keys)}  {rate:.2f}/s  {left:.0f} min left  {counts}", highlight=False)
        if arguments.seconds and time.monotonic() - started > arguments.seconds:
            break
    summary = summarise([done[key] for key in keys if key in done])
    show(summary)
    arguments.out.with_suffix(".summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if arguments.record:
        command = f"python benchmarks/mutants.py --mutants {arguments.mutants} --seed {arguments.seed}"
        command += (" --compile" if targets else "") + (" --gpus all" if gpus else "") + " --record"
        gpu = torch.cuda.get_device_name(gpus[0]) if gpus else ""
        write_figures(summary, command, gpu, arguments.mutants)


if __name__ == "__main__":
    main()
