"""Measure lowering and tidying, and record the figures.

    python benchmarks/lowering.py run out/tiny        # outcomes of a run's modules, and lengths of the code
    python benchmarks/lowering.py rate out/tiny       # modules per second on one core, for 60 of the run's
    python benchmarks/lowering.py bindings            # verdicts of tests/bindings.py, also with swapped arguments

Tokens are words, numbers and single punctuation marks of the whole text, comments included. Each run of letters is one
token: `in_ptr0` is four.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from figures import ROOT, record

from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Candidate, Lowered, Probed, Purity, Source
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

sys.path.append(str(ROOT / "tests"))

COMMAND = "python benchmarks/lowering.py"
_TOKEN = re.compile(r"[^\W\d_]+|\d+|_+|[^\w\s]")
_SETTINGS = VerifySettings(target="", find_counterexamples=False)


def tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def stage(run: Path, name: str) -> Path:
    """The folder of a stage in a finished run."""
    return next((run / "stages").glob(f"*-{name}"))


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("kept-*.parquet"))


def counted(run: Path, name: str) -> tuple[int, int]:
    """Number of records that entered a stage, and number that it kept."""
    manifest = StageManifest.read(stage(run, name) / "stage.json")
    if manifest is None:
        raise SystemExit(f"{run} has no finished stage {name}")
    return manifest.counts[0].entered, manifest.counts[0].kept


def measure_run(run: Path) -> None:
    """Record outcomes of a run's modules in `lower` and `tidy`, and lengths of the code."""
    accepted, verified = counted(run, "lower")[0], counted(run, "verify")[1]
    command, of = f"{COMMAND} run {run.name}", f"of {run.name}"
    write("lower.pass", 100 * verified / accepted, command, f"{verified} of {accepted} {of}")
    candidates = [c for path in shards(stage(run, "tidy")) for c in read_records(path, Candidate)]
    number = len(candidates)
    pure = sum(c.purity is Purity.PURE for c in candidates)
    write("lower.pure", 100 * pure / number, command, f"{pure} of {number} {of}")
    general = [c for c in candidates if c.shape_general]
    guarded = sum(any(guard for guard in c.guards) for c in general)
    note = f"{len(general)} of {number} {of}, of which {guarded} check conditions on their sizes"
    write("lower.shape_general", 100 * len(general) / number, command, note)
    shares = [tokens(c.triton_code) / tokens(c.inductor_code) for c in candidates]
    lengths = [tokens(c.triton_code) for c in candidates]
    write("lower.tokens", 100 * median(shares), command, f"{number} {of}; the median text has {median(lengths):.0f}")


class Meter:
    """Counts the busy seconds of a sandbox's guests."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.seconds = 0.0
        self._run = sandbox.run
        sandbox.run = self._metered  # type: ignore[method-assign]

    def _metered(self, job: Job) -> Report:
        report = self._run(job)
        self.seconds += report.cpu_s
        return report


def measure_rate(run: Path, number: int) -> None:
    """Record modules per busy second of guests and this process, so that other work on the machine does not count."""
    probed = [p for path in shards(stage(run, "deduplicate")) for p in read_records(path, Probed)]
    chosen = probed[:: max(1, len(probed) // number)][:number]
    lowered: list[Lowered] = []
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        lower(chosen[0], sandbox)  # the warm process, and what it imports
        meter, started = Meter(sandbox), time.process_time()
        for module in chosen:
            outcome = lower(module, sandbox)
            lowered += [outcome.record] if isinstance(outcome, Kept) else []
        host = time.process_time() - started
    started = time.process_time()
    for one in lowered:
        tidy(one)
    tidying = time.process_time() - started
    total = meter.seconds + host + tidying
    note = (
        f"{len(chosen)} of {run.name}, {len(lowered)} lowered; seconds a module: {meter.seconds / len(chosen):.2f} in "
    )
    note += (
        f"the guest, {host / len(chosen):.3f} in the host, {tidying / max(1, len(lowered)):.3f} for tidying; busy time"
    )
    write("lower.rate", len(chosen) / total, f"{COMMAND} rate {run.name}", note)


def swapped(lowered: Lowered) -> Iterator[Lowered]:
    """The record with two arguments of the same shape and kind swapped."""
    shapes = {state.name: state.shape for state in lowered.probed.state}
    held = [b for b in lowered.bindings if b.source in (Source.PARAMETER, Source.BUFFER) and b.name in shapes]
    for one, other in itertools.combinations(held, 2):
        if shapes[one.name] == shapes[other.name]:
            names = {one.argument: other, other.argument: one}
            wrong = (names.get(b.argument, b) for b in lowered.bindings)
            pairs = zip(lowered.bindings, wrong, strict=True)
            yield replace(lowered, bindings=tuple(replace(b, source=w.source, name=w.name) for b, w in pairs))


def holds(lowered: Lowered, sandbox: Sandbox) -> bool:
    candidate = tidy(lowered)
    return isinstance(candidate, Kept) and isinstance(verify(candidate.record, sandbox, _SETTINGS), Kept)


def measure_bindings() -> None:
    """Record the verdicts of all modules, and of each with two arguments of the same shape swapped."""
    from bindings import BOUND
    from modules import probed

    wrong, tried, unnoticed = [], 0, list[str]()
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        for about, (code, calls, expected) in BOUND.items():
            outcome = lower(probed(code, *calls), sandbox)
            if not isinstance(outcome, Kept):
                wrong.append(about)
                continue
            lowered = outcome.record
            right = [(b.source, b.name) for b in lowered.bindings] == expected and holds(lowered, sandbox)
            wrong += [] if right else [about]
            used = [other for other in swapped(lowered) if tidy(other) != tidy(lowered)]  # else neither is used
            noticed = [not holds(other, sandbox) for other in used]
            tried += len(noticed)
            unnoticed += [about] * noticed.count(False)
            print(
                f"{'right' if right else 'WRONG'}  {sum(noticed):3} of {len(noticed):3} swaps noticed  {about}",
                flush=True,
            )
    note = (
        f"{len(BOUND)} modules; of {tried} swaps of two arguments of one shape, {tried - len(unnoticed)} were noticed"
    )
    write("lower.misbound", len(wrong), f"{COMMAND} bindings", "; ".join([note, *unnoticed]))


def write(figure: str, value: float, command: str, note: str) -> None:
    print(figure, record(figure, value, command, note).value, note, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "rate", "bindings"))
    parser.add_argument("run", type=Path, nargs="?", default=ROOT / "out" / "tiny", help="a finished run")
    parser.add_argument("--number", type=int, default=60, help="modules to take the rate of")
    args = parser.parse_args()
    if args.what == "run":
        measure_run(args.run)
    elif args.what == "rate":
        measure_rate(args.run, args.number)
    else:
        measure_bindings()


if __name__ == "__main__":
    main()
