"""Index file of a benchmark: JSON lines with the fingerprints of its problems, sorted by name, without their text."""

from __future__ import annotations

import ast
import base64
import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelquarry.pipeline.runtime.source_closure import ROOT
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import replace_file
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.transforms.similarity import normal_form

from .module_fingerprint import Fingerprint, Problem

FORMAT = 6  # increases when fingerprints change: an old index would silently match nothing
SUFFIX = ".index.jsonl"
SHIPPED = Path(__file__).parent / "benchmarks"


# Code that decides a fingerprint, in the folder of the packages. The search for a call of a module does not count: a
# row that is called in another way still shares the digests of its source and of its even sizes.
_CODE = (
    "pipeline/sandbox/guest/similarity/behaviour_digest.py",
    "pipeline/sandbox/guest/similarity/operator_graph.py",
    "transforms/decontaminate/benchmark_problems.py",
    "transforms/decontaminate/build_index.py",
    "transforms/decontaminate/module_fingerprint.py",
    "transforms/decontaminate/own_inputs.py",
    "transforms/decontaminate/traces.py",
    "transforms/probe/inference.py",
    "transforms/probe/positional.py",
    "transforms/similarity/form.py",
    "transforms/similarity/normal_form.py",
    "transforms/similarity/operator_signature.py",
)
_FEW = 10  # problems; every benchmark of kernels has more


@dataclass(frozen=True, slots=True)
class Origin:
    """The published source of a benchmark."""

    benchmark: str
    source: str  # repository, folder, file or dataset
    commit: str = ""
    licence: str = ""  # SPDX identifier


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The header, which is the first line of an index."""

    benchmark: str
    source: str  # repository, folder, file or dataset that it was made from
    commit: str
    licence: str
    problems: int
    ran: int  # number of problems with an operator graph or a behaviour
    torch: str  # version that the problems ran on; graphs of other versions may differ
    code: str  # `fingerprinting_code` of the release that made it
    format: int = FORMAT

    @property
    def warning(self) -> str:
        """A warning if the index is nearly empty, else ""."""
        if self.problems >= _FEW:
            return ""
        return (
            f"the index of {self.benchmark} has {self.problems} problems, of which {self.ran} run: it finds next to "
            f"nothing: check that {self.source} is the folder or table with the benchmark's problems"
        )


@functools.cache
def fingerprinting_code() -> str:
    """Digest of the code that decides fingerprints, without comments, docstrings and annotations."""
    texts = [ast.unparse(normal_form.exact((ROOT / name).read_text())) for name in _CODE]
    return sha256("\n\n".join(texts))[:16]


def shipped(directory: Path | None = None) -> list[Path]:
    """Indexes in the package and in `directory`, which take precedence over those of the same name."""
    paths = [path for folder in (SHIPPED, directory) if folder for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return sorted({path.name: path for path in paths}.values())


def write_index(path: Path, origin: Origin, torch: str, problems: Sequence[Problem]) -> IndexFile:
    """Write an index."""
    ran = sum(bool(problem.fingerprint.signatures or problem.fingerprint.behaviours) for problem in problems)
    header = IndexFile(**asdict(origin), problems=len(problems), ran=ran, torch=torch, code=fingerprinting_code())
    lines: list[object] = [asdict(header)]
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
        "source": fingerprint.source,
        "runs": base64.b64encode(fingerprint.runs).decode(),
        "signatures": list(fingerprint.signatures),
        "size": fingerprint.size,
        "operators": fingerprint.operators,
        "behaviours": list(fingerprint.behaviours),
    }


def _problem(benchmark: str, line: dict[str, object]) -> Problem:
    signatures, behaviours, size, operators = (line[key] for key in ("signatures", "behaviours", "size", "operators"))
    assert isinstance(signatures, list) and isinstance(behaviours, list)
    assert isinstance(size, int) and isinstance(operators, int)
    fingerprint = Fingerprint(
        source=str(line["source"]),
        runs=base64.b64decode(str(line["runs"]), validate=True),
        signatures=tuple(map(str, signatures)),
        size=size,
        operators=operators,
        behaviours=tuple(map(str, behaviours)),
    )
    return Problem(benchmark, str(line["name"]), fingerprint)


def read_all(paths: Iterable[Path]) -> tuple[tuple[IndexFile, ...], tuple[Problem, ...]]:
    """(headers of the indexes, all their problems). Raises: UserError."""
    indexes = [read_index(path) for path in paths]
    problems = tuple(problem for _, found in indexes for problem in found)
    return tuple(header for header, _ in indexes), problems
