"""Check which right answers of models, written without knowledge of the language, are inside of it.

    python benchmarks/inside.py CHECKOUTS              # a folder with a checkout of each repository, under its name
    python benchmarks/inside.py CHECKOUTS --fresh      # the sources that no change of the language was made for
    python benchmarks/inside.py CHECKOUTS --record     # and write the figures

`inside_sources.json` lists the repositories with their commits and licences, and says how each records that an answer
is right. No answer is run, and no text of theirs is written. Of an answer that occurs twice, one counts.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import ROOT, record

from kernelquarry.filters.language import check
from kernelquarry.filters.language.unused import without_unused
from kernelquarry.pipeline.schema.errors import UserError

SOURCES = ROOT / "benchmarks" / "inside_sources.json"
COMMAND = "python benchmarks/inside.py CHECKOUTS"
_MOST_REASONS = 12  # that are printed for a source


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A public repository with answers of models, and where it records that they are right."""

    repository: str
    commit: str
    licence: str  # "" if the repository states none
    reader: str  # a key of READERS
    right: str  # how the repository records that an answer is right
    count: int  # right answers
    entry: str  # name of the class or function that is the answer
    fresh: bool  # no change of the language was made for this source


@dataclass(frozen=True, slots=True)
class Measured:
    """The right answers of a source, and the messages about those that are outside of the language."""

    answers: int
    outside: tuple[str, ...]

    @property
    def inside(self) -> int:
        return self.answers - len(self.outside)

    def __str__(self) -> str:
        return f"{self.inside} of {self.answers} inside ({100 * self.inside / max(self.answers, 1):.1f} %)"


def _of_evaluations(root: Path) -> Iterator[str]:
    """The right answer with the best score for each problem of LLMKernel."""
    for problem in sorted(root.glob("results/*/*")):
        evaluations = [json.loads(each.read_text()) for each in sorted(problem.glob("evaluation/eval_*.json"))]
        right = [
            (evaluation.get("score") or 0.0, file)
            for evaluation in evaluations
            if evaluation.get("runnable") and evaluation.get("candidate_file")
            if (file := problem / "code" / Path(evaluation["candidate_file"]).name).exists()
        ]
        if right:
            yield max(right)[1].read_text()


def _of_tables(root: Path) -> Iterator[str]:
    """The answers of tritonLLM whose row of a table says that they are correct."""
    for table in sorted(root.glob("results/*.csv")):
        kind, _, model = table.stem.partition("_")
        for row in csv.DictReader(table.read_text().splitlines()):
            folder = root / "output" / kind / model / row.get("Level", "")
            stems = (row["Problem"], row["Problem"].rstrip("_"))
            files = [file for stem in stems if (file := folder / f"{stem}.py").exists()]
            if row["Correctness"] == "True" and files:
                yield files[0].read_text()


def _of_kernel_agent(root: Path) -> Iterator[str]:
    """The kernels of KernelAgent that passed: of whole problems, and of the parts that it divided problems into."""
    exported = json.loads((root / "export_summary.json").read_text())
    passed = sorted(f"{each['level']}/{Path(each['problem']).stem}" for each in exported if each["ok"])
    yield from (file.read_text() for place in passed if (file := root / place / "kernel_code.py").exists())
    for manifest in sorted(root.glob("L3/*/manifest.json")):
        if json.loads(manifest.read_text())["verify"].get("passed"):
            names = ("final_kernel.py", "composed_kernel.py")
            yield from (file.read_text() for name in names if (file := manifest.with_name(name)).exists())
    for summary in sorted(root.glob("L3/*/kernels/summary.json")):
        for part in json.loads(summary.read_text()):
            file = summary.with_name(part["id"]) / "kernel.py"
            if part.get("success") and file.exists():
                yield file.read_text()


def _of_traces(root: Path) -> Iterator[str]:
    """The last answer of each trace of a model that ends with a correct one."""
    for name in ("reasoning_traces_glm45_correct.json", "reasoning_traces_qwen3_multiturn.json"):
        for trace in json.loads((root / name).read_text()):
            result: Mapping[str, Any] = trace.get("final_result") or trace.get("result") or {}
            if result.get("correctness") and (code := trace.get("final_triton_code") or trace.get("triton_code")):
                yield code


READERS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "evaluations": _of_evaluations,
    "tables": _of_tables,
    "kernel_agent": _of_kernel_agent,
    "traces": _of_traces,
}


def sources() -> list[AnswerSource]:
    return [AnswerSource(**entry) for entry in json.loads(SOURCES.read_text())]


def measure(source: AnswerSource, checkouts: Path) -> Measured:
    """Check the right answers of a source. Raises: UserError: its checkout is missing, or another one."""
    root = checkouts / source.repository.partition("/")[2]
    if not root.is_dir():
        raise UserError(f"{root} does not exist: check out {source.repository} at {source.commit} there")
    answers = [*dict.fromkeys(READERS[source.reader](root))]
    if len(answers) != source.count:
        raise UserError(
            f"{root} has {len(answers)} right answers in place of {source.count}: check out the commit {source.commit}"
        )
    found = [check(without_unused(answer, entry=source.entry).code) for answer in answers]
    return Measured(len(answers), tuple(_reason(str(each)) for each in found if each is not None))


def _reason(message: str) -> str:
    return re.sub(r"^line \d+: ", "", message)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--fresh", action="store_true", help="only the sources that no change was made for")
    parser.add_argument("--record", action="store_true", help="write the figures")
    args = parser.parse_args()
    totals = {False: Measured(0, ()), True: Measured(0, ())}
    for source in sources():
        if args.fresh and not source.fresh:
            continue
        try:
            found = measure(source, args.checkouts)
        except UserError as error:
            sys.exit(f"inside: {error}")
        earlier = totals[source.fresh]
        totals[source.fresh] = Measured(earlier.answers + found.answers, earlier.outside + found.outside)
        print(f"{source.repository} ({'fresh' if source.fresh else 'known'}): {found}")
        for reason, number in Counter(found.outside).most_common(_MOST_REASONS):
            print(f"  {number:4}  {reason}")
    for fresh, total in totals.items():
        if total.answers:
            print(f"{'fresh' if fresh else 'known'} sources: {total}")
            if args.record:
                note = f"of {total.answers} answers of {sum(each.fresh is fresh for each in sources())} repositories"
                share = 100 * total.inside / total.answers
                record("verdict.inside" if fresh else "verdict.inside.known", share, COMMAND, note)


if __name__ == "__main__":
    main()
