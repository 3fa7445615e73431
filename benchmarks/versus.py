"""Compare the error rates of this verifier, of KernelBench's evaluator, and of `allclose`, on the same candidates.

    git -C CLONE archive HEAD src/kernelbench | tar x -C out/versus/kernelbench    # CLONE: of KernelBench
    python benchmarks/versus.py judge --results out/versus.jsonl --kernelbench out/versus/kernelbench
    python benchmarks/versus.py judge --results out/versus.jsonl --kernelbench out/versus/kernelbench \\
        --corpora mutants --dataset out/tiny/dataset --mutants 1000 --minutes 8
    python benchmarks/versus.py record --results out/versus.jsonl --revision COMMIT    # of KernelBench

The candidates are the evil corpus, the honest corpus, and mutants of a dataset's rows. A mutant is wrong if the
verifier rejects it or a witness shows that it is wrong (docs/results/mutants.md). The judges:

    ours         the verifier
    kernelbench  `eval_kernel_against_ref` of a checkout, five trials, in a guest with a GPU; left out without one
    static       the same, and KernelBench's static checker reports no error
    allclose     one call on the first workload, `torch.allclose` with 1e-2 for both tolerances

A rate counts only candidates that every judge can judge. KernelBench and `allclose` can judge a candidate if they
accept its control: for a mutant, the row's own kernel; otherwise the reference as its own answer.

Results are JSON lines. A stopped run resumes; a change of the verifier repeats the verifier's own part. `record` writes
the figures and `docs/results/versus.json`, from which `make docs` makes the page and the table of the dataset card.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import evil  # also puts tests/, where `corpus` is, on the path
import honest
import torch
from corpus import GROUPS, Case, load_cases
from figures import ROOT, installed, machine, record
from mutants import SETTINGS, measure, verifier_code, wilson
from mutate import Fault, Mutant, choose
from witness import Outcome, try_mutant

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.score_kernelbench import (
    SCORE_KERNELBENCH,
    SCORE_KERNELBENCH_GPU,
    KernelbenchRequest,
)
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, SCRIPT_GPU, ScriptRequest
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import replace_file
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT, Pair
from kernelquarry.transforms.probe.render_module import render
from kernelquarry.transforms.verify import verify
from kernelquarry.transforms.verify.evidence import Rejected

COMMAND = "python benchmarks/versus.py"
FIGURE = "verdict.versus.kernelbench"
RECORDED = ROOT / "docs" / "results" / "versus.json"
JUDGES = ("ours", "kernelbench", "static", "allclose")
EVIL, HONEST, MUTANTS, CONTROL = CORPORA = ("evil", "honest", "mutants", "control")
TRIALS = 5  # of KernelBench, as in its scripts/eval_from_generations.py
TOLERANCE = 1e-2  # of `allclose`, absolute and relative
SCRIPT_FILE = Path(__file__).with_name("kernelbench_guest.py")
OF_CASES = {EVIL: evil.SETTINGS, HONEST: honest.SETTINGS}
_LIMITS = Limits(wall_s=90.0, cpu_s=60, memory_mb=16 << 10)  # of a guest of `kernelbench` and `allclose`
_UNSUPPORTED = "which guests do not give"  # message of a launch that only the sandbox refuses
_MESSAGE = 300  # characters
Line = dict[str, Any]
"""A verdict: `accepted` is None if the judge failed, `truth` is set by `ours` for mutants only."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate for the judges. A control has no subject, and `ours` does not judge it."""

    corpus: str
    group: str  # class in the tables
    name: str
    reference: str  # source with Model, get_inputs() and get_init_inputs()
    code: str  # source with ModelNew
    control: str = ""  # id of its control
    subject: Case | tuple[Pair, Mutant] | None = None

    @property
    def id(self) -> str:
        text = f"{self.reference}\0{self.code}"
        return f"{self.corpus}:{self.name}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def own_answer(reference: str) -> Entry:
    """The control of a case: the reference as its own answer."""
    code = f"{reference.rstrip()}\n\n\n{CANDIDATE_ENTRY_POINT} = {ENTRY_POINT}\n"
    return Entry(CONTROL, "reference", "", reference, code)


def of_cases(corpus: str, gpus: bool) -> Iterator[Entry]:
    """Cases of the evil or the honest corpus, each after its control."""
    cases = load_cases(corpus) + (load_cases(corpus, needs="gpu") if gpus else [])
    for case in cases:
        probed = case.candidate.probed
        reference = render(probed.python_code, probed.init_args, probed.workloads[0])
        yield (control := own_answer(reference))
        yield Entry(
            corpus, case.group or HONEST, case.name, reference, case.candidate.triton_code, control.id, subject=case
        )


def of_mutants(dataset: Path, number: int, seed: int) -> Iterator[Entry]:
    """Mutants of a dataset's rows, each after its control, the row's own kernel."""
    rows = {row.id: row for row in read_rows(dataset)}
    for mutant in choose(list(rows.values()), number, seed):
        row = rows[mutant.pair]
        yield (control := Entry(CONTROL, "row", row.id, row.python_code, row.triton_code))
        yield Entry(
            MUTANTS, mutant.fault.value, mutant.id, row.python_code, mutant.code, control.id, subject=(row, mutant)
        )


def by_ours(entry: Entry, sandbox: Sandbox) -> Line:
    if isinstance(entry.subject, Case):
        check = partial(verify, settings=OF_CASES[entry.corpus])
        outcome = run_guarded(check, entry.subject.candidate, sandbox)
        if isinstance(outcome, Kept):
            return {"accepted": True, "why": ""}
        rejected = isinstance(outcome, Dropped)
        return {"accepted": False if rejected else None, "why": str(outcome)[:_MESSAGE]}
    assert entry.subject is not None
    row, mutant = entry.subject
    try:
        finding = try_mutant(row, mutant, sandbox, SETTINGS)
    except Rejected as rejected:  # of the reference
        return {"accepted": None, "why": str(rejected)[:_MESSAGE], "truth": ""}
    accepted = finding.outcome in (Outcome.MISSED, Outcome.EQUIVALENT)
    return {"accepted": accepted, "why": finding.reason, "truth": finding.outcome.value}


def by_allclose(entry: Entry, sandbox: Sandbox) -> Line:
    with shared_gpu(sandbox) as gpu:
        request = KernelbenchRequest(entry.reference, entry.code, 1, (TOLERANCE,), gpu)
        kind = SCORE_KERNELBENCH if gpu is None else SCORE_KERNELBENCH_GPU
        report = sandbox.run(Job(kind, request, {}, _LIMITS))
    if report.reply is None:
        return verdict(False, f"{report.status}: {report.error}")
    return verdict(bool(report.reply.tolerances), report.reply.error)


def by_kernelbench(entry: Entry, sandbox: Sandbox, files: Mapping[str, str]) -> Line:
    with shared_gpu(sandbox) as gpu:
        arguments = {"files": files, "reference": entry.reference, "candidate": entry.code}
        arguments |= {"trials": TRIALS, "gpu": gpu}
        request = ScriptRequest(SCRIPT_FILE.read_text(), arguments)
        report = sandbox.run(Job(SCRIPT if gpu is None else SCRIPT_GPU, request, {}, _LIMITS))
    if not isinstance(report.reply, dict):
        return verdict(False, f"{report.status}: {report.error}") | {"static": []}
    found = verdict(report.reply.get("accepted") is True, str(report.reply.get("why")))
    return found | {"static": report.reply.get("static", [])}


def verdict(accepted: bool, why: str) -> Line:
    return {"accepted": None if _UNSUPPORTED in why else accepted, "why": why[:_MESSAGE]}


@contextlib.contextmanager
def shared_gpu(sandbox: Sandbox) -> Iterator[int | None]:
    if sandbox.gpus is None:
        yield None
        return
    with sandbox.gpus.share() as gpu:
        yield gpu


@dataclass(frozen=True, slots=True)
class Work:
    """A candidate and a judge of it."""

    judge: str
    prefix: str  # names the judge and its code
    entry: Entry

    @property
    def key(self) -> str:
        return f"{self.prefix} {self.entry.id}"


def run(work: Work, sandbox: Sandbox, files: Mapping[str, str]) -> Line:
    """The line of a verdict."""
    judges: Mapping[str, Callable[[Entry, Sandbox], Line]] = {
        "ours": by_ours,
        "kernelbench": partial(by_kernelbench, files=files),
        "allclose": by_allclose,
    }
    started, entry = time.monotonic(), work.entry
    about = {"key": work.key, "judge": work.judge, "id": entry.id, "corpus": entry.corpus, "class": entry.group}
    found = judges[work.judge](entry, sandbox)
    return about | {"control": entry.control} | found | {"seconds": round(time.monotonic() - started, 3)}


def read_checkout(folder: Path) -> dict[str, str]:
    """The modules of KernelBench's package, by name. Raises: UserError: the folder is no checkout."""
    package = folder / "src" / "kernelbench"
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(package.glob("*.py"))}
    if "eval.py" not in files:
        raise UserError(f"{package} has no eval.py: name a checkout of KernelBench")
    return files


def prefixes(gpus: tuple[int, ...], files: Mapping[str, str] | None) -> dict[str, str]:
    """Each judge with a digest of its code. A result holds for this code."""
    found = {"ours": f"ours {verifier_code(gpus)}", "allclose": f"allclose {'gpu' if gpus else 'interpreted'}"}
    if files is not None:
        text = json.dumps([SCRIPT_FILE.read_text(), files])
        found["kernelbench"] = f"kernelbench {hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return found


def plan(entries: Iterable[Entry], judges: Mapping[str, str], done: set[str]) -> list[Work]:
    """The work that is left, a candidate's judges together, each control once."""
    work = [
        Work(judge, prefix, entry)
        for entry in entries
        for judge, prefix in judges.items()
        if judge != "ours" or entry.corpus != CONTROL
    ]
    return list({piece.key: piece for piece in work if piece.key not in done}.values())


def judge(args: argparse.Namespace) -> None:
    gpus = choose_gpus(args.gpus)
    files = read_checkout(args.kernelbench) if args.kernelbench else None
    if files is not None and not gpus:
        print("KernelBench's evaluator needs a GPU and there is none: it is left out")
        files = None
    entries = [entry for corpus in (EVIL, HONEST) if corpus in args.corpora for entry in of_cases(corpus, bool(gpus))]
    if MUTANTS in args.corpora:
        entries += of_mutants(args.dataset, args.mutants, args.seed)
    judges = prefixes(gpus, files)
    args.results.parent.mkdir(parents=True, exist_ok=True)
    where = machine(gpu_name() if gpus else "no GPU")
    add_line(args.results, {"machine": where, "versions": installed(), "judges": judges})
    done = {line["key"] for line in read_lines(args.results) if "key" in line}
    work = plan(entries, judges, done)
    print(f"{len(work)} verdicts to reach", flush=True)

    def progress(seconds: float) -> None:
        reached = sum("key" in line for line in read_lines(args.results)) - len(done)
        print(f"{reached} of {len(work)} in {seconds:.0f} s", flush=True)

    sandboxed = SandboxSettings(workers=args.workers, gpus=gpus)
    measure(work, args.results, partial(run, files=files or {}), sandboxed, args.processes, 60 * args.minutes, progress)
    show(summarise(args.results))


def gpu_name() -> str:
    return str(torch.cuda.get_device_name())


class Verdicts:
    """The verdicts of a file of results, without those of earlier code of a judge."""

    def __init__(self, path: Path) -> None:
        lines = read_lines(path)
        begun = [line for line in lines if "judges" in line]
        if not begun:
            raise UserError(f"{path} has no results: run `{COMMAND} judge` first")
        self.about, self.prefixes = begun[-1], {judge: p for line in begun for judge, p in line["judges"].items()}
        self._lines: dict[tuple[str, str], Line] = {}
        for line in lines:
            if "key" in line and line["key"].startswith(f"{self.prefixes[line['judge']]} "):
                self._lines[line["judge"], line["id"]] = line
        self.judges = [judge for judge in JUDGES if self._source(judge) in self.prefixes]

    def entries(self) -> list[Line]:
        """One line of each candidate that every judge has reached."""
        sources = {self._source(judge) for judge in self.judges}
        return [
            line
            for (judge, id), line in self._lines.items()
            if judge == "ours" and all((source, id) in self._lines for source in sources)
        ]

    def accepts(self, judge: str, entry: Line) -> bool | None:
        """The judge's verdict on a candidate; None if it cannot judge it."""
        line = self._lines[self._source(judge), entry["id"]]
        control = self._lines.get((self._source(judge), entry["control"]))
        if judge == "ours" or line["accepted"] is None:
            accepted: bool | None = line["accepted"]
            return accepted
        if control is None or not control["accepted"]:
            return None
        if judge != "static":
            return bool(line["accepted"])
        if entry["corpus"] == MUTANTS and control["static"]:  # the checker objects to the row's own kernel
            return None
        return bool(line["accepted"]) and not line["static"]

    @staticmethod
    def _source(judge: str) -> str:
        return "kernelbench" if judge == "static" else judge


def summarise(path: Path) -> dict[str, Any]:
    """Errors of each judge by class, on the candidates that all judges can judge."""
    verdicts = Verdicts(path)
    entries = [entry for entry in verdicts.entries() if truth(entry) is not None]
    counted, left_out = list[tuple[Line, dict[str, bool]]](), Counter[str]()
    for entry in entries:
        found = {judge: verdicts.accepts(judge, entry) for judge in verdicts.judges}
        if None in found.values():
            left_out[entry["corpus"]] += 1
        else:
            counted.append((entry, {judge: accepted is (not truth(entry)) for judge, accepted in found.items()}))
    groups = [(EVIL, group) for group in GROUPS] + [(MUTANTS, fault.value) for fault in Fault]
    wanted: list[tuple[str, Callable[[Line], bool]]] = [
        *((f"{corpus}: {group}", functools.partial(_is_of, corpus, group)) for corpus, group in groups),
        ("all evil", lambda entry: entry["corpus"] == EVIL),
        ("all mutants", lambda entry: entry["corpus"] == MUTANTS),
        ("all wrong", lambda entry: entry["corpus"] in (EVIL, MUTANTS)),
        (HONEST, lambda entry: entry["corpus"] == HONEST),
    ]
    classes = [
        class_row(name, [errors for entry, errors in counted if fits(entry)], verdicts.judges) for name, fits in wanted
    ]
    unproven = [entry for entry in verdicts.entries() if entry.get("truth") == Outcome.EQUIVALENT]
    return {
        "machine": verdicts.about["machine"],
        "versions": verdicts.about["versions"],
        "judges": verdicts.judges,
        "code": verdicts.prefixes,
        "classes": [row for row in classes if row["candidates"]],
        "left_out": dict(sorted(left_out.items())),
        "unproven": len(unproven),
        "disputed": {
            judge: sorted(entry["id"] for entry in unproven if verdicts.accepts(judge, entry) is False)
            for judge in verdicts.judges
            if judge != "ours"
        },
    }


def truth(entry: Line) -> bool | None:
    """True if the candidate is right, None if unknown or if the mutant runs on no input."""
    if entry["corpus"] == MUTANTS:
        return False if entry["truth"] in (Outcome.KILLED, Outcome.MISSED) else None
    return bool(entry["corpus"] == HONEST)


def _is_of(corpus: str, group: str, entry: Line) -> bool:
    return entry["corpus"] == corpus and entry["class"] == group


def class_row(name: str, errors: Sequence[Mapping[str, bool]], judges: Sequence[str]) -> dict[str, Any]:
    """The row of a class: for each judge, its number of errors, and the rate with Wilson's interval, in percent."""
    row: dict[str, Any] = {"class": name, "candidates": len(errors)}
    for judge in judges:
        wrong = sum(error[judge] for error in errors)
        low, high = wilson(wrong, len(errors))
        rate = 100 * wrong / len(errors) if errors else 0.0
        row[judge] = {"errors": wrong, "rate": round(rate, 4), "low": round(low, 4), "high": round(high, 4)}
    return row


def show(summary: Mapping[str, Any]) -> None:
    for row in summary["classes"]:
        rates = (f"{judge} {row[judge]['errors']} ({row[judge]['rate']:.1f} %)" for judge in summary["judges"])
        print(f"{row['class']:30}{row['candidates']:5}  {', '.join(rates)}")
    print(f"left out: {summary['left_out']}; mutants without a witness: {summary['unproven']}, of which rejected by")
    print(*(f"    {judge}: {len(ids)}" for judge, ids in summary["disputed"].items()), sep="\n")


def write(results: Path, revision: str) -> None:
    """Record the figures, and write the file that the page is made from."""
    summary = summarise(results) | {"revision": revision, "trials": TRIALS}
    show(summary)
    rows = {row["class"]: row for row in summary["classes"]}
    check_complete(results, summary["judges"])
    if missing := {"all evil", "all mutants", HONEST} - rows.keys():
        raise UserError(f"{results} has no verdicts on {', '.join(sorted(missing))}: judge them first")
    for name, suffix in (("all wrong", ""), (HONEST, ".rejects")):
        for judge in summary["judges"]:
            id = f"{FIGURE}{suffix}{'' if judge == 'kernelbench' else f'.{judge}'}"
            record(
                id, rows[name][judge]["rate"], COMMAND, note(rows, name, judge), summary["machine"], summary["versions"]
            )
    for corpus, id, wrong in (
        (EVIL, "verdict.evil_accepted.gpu", True),
        (HONEST, "verdict.false_rejects.honest.gpu", False),
    ):
        accepted = [entry["accepted"] for entry in Verdicts(results).entries() if entry["corpus"] == corpus]
        about = f"of {len(accepted)}, executed; verdicts of the comparison"
        record(
            id, accepted.count(wrong) + accepted.count(None), COMMAND, about, summary["machine"], summary["versions"]
        )
    with replace_file(RECORDED) as stream:
        stream.write((json.dumps(summary, indent=1) + "\n").encode())


def check_complete(results: Path, judges: Sequence[str]) -> None:
    """Raises: UserError: a judge has no verdict on a case of a corpus; classes are judged in order, so a rate would be
    that of some classes."""
    if missing := set(JUDGES) - set(judges):
        raise UserError(f"{results} has no verdicts by {', '.join(sorted(missing))}: run `{COMMAND} judge` on a GPU")
    reached = {entry["id"] for entry in Verdicts(results).entries()}
    cases = [entry for corpus in (EVIL, HONEST) for entry in of_cases(corpus, gpus=True) if entry.corpus != CONTROL]
    if left := sum(entry.id not in reached for entry in cases):
        raise UserError(f"{results} lacks a verdict on {left} of {len(cases)} cases: run `{COMMAND} judge` again")


def note(rows: Mapping[str, Any], name: str, judge: str) -> str:
    parts = [name, "all evil", "all mutants"] if name == "all wrong" else [name]
    return "; ".join(
        f"{part}: {rows[part][judge]['errors']} of {rows[part]['candidates']}, "
        f"95 %: {rows[part][judge]['low']:.2f} to {rows[part][judge]['high']:.2f}"
        for part in parts
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("judge", "record"))
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--kernelbench", type=Path, help="a checkout of KernelBench, or its src/kernelbench alone")
    parser.add_argument("--corpora", nargs="+", choices=CORPORA[:3], default=[EVIL, HONEST])
    parser.add_argument("--dataset", type=Path, default=Path("out/tiny/dataset"), help="whose rows are mutated")
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--workers", type=int, default=2, help="guests at once")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the workers")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time; a further run resumes")
    parser.add_argument("--revision", default="", help="with record: KernelBench's commit")
    args = parser.parse_args()
    try:
        judge(args) if args.what == "judge" else write(args.results, args.revision)
    except UserError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
