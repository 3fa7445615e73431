"""Fingerprints of a benchmark in a file without its text, so that it can be shipped: lines of JSON, sorted by name."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import replace_file
from kernelquarry.pipeline.schema.ids import canonical

from .module_fingerprint import Fingerprint, Problem

FORMAT = 3  # changes with the fingerprints: an old index would find nothing and say nothing
SUFFIX = ".index.jsonl"
_SHIPPED = Path(__file__).parent / "benchmarks"


@dataclass(frozen=True, slots=True)
class IndexFile:
    """What the first line of an index says."""

    benchmark: str
    source: str  # what it was made from
    problems: int
    ran: int  # problems that have a graph or a behaviour
    torch: str  # version that they ran on; graphs of another may differ
    format: int = FORMAT


def shipped(directory: Path | None = None) -> list[Path]:
    """Indexes that come with the package, and those of `directory`, which win over one of the same name."""
    paths = [path for folder in (_SHIPPED, directory) if folder for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return sorted({path.name: path for path in paths}.values())


def write_index(path: Path, source: str, torch: str, problems: Sequence[Problem]) -> IndexFile:
    """Raises: ValueError if the problems are not all of one benchmark."""
    (benchmark,) = {problem.benchmark for problem in problems}
    ran = sum(bool(problem.fingerprint.paths or problem.fingerprint.behaviours) for problem in problems)
    about = IndexFile(benchmark, source, len(problems), ran, torch)
    lines = [{name: getattr(about, name) for name in IndexFile.__slots__}]
    lines += [_plain(problem) for problem in sorted(problems, key=lambda problem: problem.name)]
    with replace_file(path) as stream:
        stream.writelines((canonical(line) + "\n").encode() for line in lines)
    return about


def read_index(path: Path) -> tuple[IndexFile, tuple[Problem, ...]]:
    """Raises: UserError: it is none, or of another release."""
    try:
        first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
        about = IndexFile(**first)
        if about.format != FORMAT:
            raise UserError(
                f"{path}: an index of format {about.format}, this release reads {FORMAT}: make it again with "
                "`kernelquarry index-benchmarks`"
            )
        problems = tuple(_problem(about.benchmark, line) for line in lines)
    except (ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: no index of a benchmark ({error}): make one with `kernelquarry index-benchmarks`"
        ) from None
    if len(problems) != about.problems:
        raise UserError(f"{path}: {len(problems)} of {about.problems} problems: it is not complete")
    return about, problems


def _plain(problem: Problem) -> dict[str, object]:
    found = problem.fingerprint
    return {
        "name": problem.name,
        "exact": found.exact,
        "renamed": found.renamed,
        "erased": found.erased,
        "ngrams": [base64.b64encode(runs).decode() for runs in found.ngrams],
        "sketch": base64.b64encode(np.array(found.sketch, np.uint32).tobytes()).decode(),
        "paths": dict(sorted(found.paths.items())),
        "behaviours": list(found.behaviours),
    }


def _problem(benchmark: str, line: dict[str, object]) -> Problem:
    text = {name: str(line[name]) for name in ("exact", "renamed", "erased", "sketch")}
    ngrams, paths, behaviours = line["ngrams"], line["paths"], line["behaviours"]
    assert isinstance(ngrams, list) and isinstance(paths, dict) and isinstance(behaviours, list)
    sketch = np.frombuffer(base64.b64decode(text.pop("sketch"), validate=True), np.uint32)
    return Problem(
        benchmark,
        str(line["name"]),
        Fingerprint(
            **text,
            ngrams=tuple(base64.b64decode(runs, validate=True) for runs in ngrams),
            sketch=tuple(sketch.tolist()),
            paths=Counter(paths),
            behaviours=tuple(map(str, behaviours)),
        ),
    )


def read_all(paths: Iterable[Path]) -> tuple[tuple[IndexFile, ...], tuple[Problem, ...]]:
    """The indexes' first lines, and the problems of all. Raises: UserError."""
    found = [read_index(path) for path in paths]
    return tuple(about for about, _ in found), tuple(problem for _, problems in found for problem in problems)
