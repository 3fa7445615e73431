"""Index file of a benchmark: JSON lines with the fingerprints of its problems, sorted by name, without their text."""

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

FORMAT = 4  # increases when fingerprints change: an old index would silently match nothing
SUFFIX = ".index.jsonl"
_SHIPPED = Path(__file__).parent / "benchmarks"


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The header, which is the first line of an index."""

    benchmark: str
    source: str  # folder, file or dataset that it was made from
    problems: int
    ran: int  # number of problems with an operator graph or a behaviour
    torch: str  # version that the problems ran on; graphs of other versions may differ
    format: int = FORMAT


def shipped(directory: Path | None = None) -> list[Path]:
    """Indexes in the package and in `directory`, which take precedence over those of the same name."""
    paths = [path for folder in (_SHIPPED, directory) if folder for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return sorted({path.name: path for path in paths}.values())


def write_index(path: Path, source: str, torch: str, problems: Sequence[Problem]) -> IndexFile:
    """Write an index. Raises: ValueError: the problems belong to several benchmarks."""
    (benchmark,) = {problem.benchmark for problem in problems}
    ran = sum(bool(problem.fingerprint.paths or problem.fingerprint.behaviours) for problem in problems)
    header = IndexFile(benchmark, source, len(problems), ran, torch)
    lines = [{name: getattr(header, name) for name in IndexFile.__slots__}]
    lines += [_to_json(problem) for problem in sorted(problems, key=lambda problem: problem.name)]
    with replace_file(path) as stream:
        stream.writelines((canonical(line) + "\n").encode() for line in lines)
    return header


def read_index(path: Path) -> tuple[IndexFile, tuple[Problem, ...]]:
    """Read an index. Raises: UserError: the file is no complete index of this release's format."""
    try:
        first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
        header = IndexFile(**first)
        if header.format != FORMAT:
            raise UserError(
                f"{path}: an index of format {header.format}, this release reads {FORMAT}: make it again with "
                "`kernelquarry index-benchmarks`"
            )
        problems = tuple(_problem(header.benchmark, line) for line in lines)
    except (ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: no index of a benchmark ({error}): make one with `kernelquarry index-benchmarks`"
        ) from None
    if len(problems) != header.problems:
        raise UserError(f"{path}: {len(problems)} of {header.problems} problems: it is not complete")
    return header, problems


def _to_json(problem: Problem) -> dict[str, object]:
    fingerprint = problem.fingerprint
    return {
        "name": problem.name,
        "exact": fingerprint.exact,
        "renamed": fingerprint.renamed,
        "erased": fingerprint.erased,
        "ngrams": [base64.b64encode(runs).decode() for runs in fingerprint.ngrams],
        "sketch": base64.b64encode(np.array(fingerprint.sketch, np.uint32).tobytes()).decode(),
        "paths": dict(sorted(fingerprint.paths.items())),
        "behaviours": list(fingerprint.behaviours),
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
    """(headers of the indexes, all their problems). Raises: UserError."""
    indexes = [read_index(path) for path in paths]
    problems = tuple(problem for _, found in indexes for problem in found)
    return tuple(header for header, _ in indexes), problems
