"""The proof that no problem of KernelBench is in the training data, by the indexes that the package ships."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.files import write_text
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.decontaminate.benchmark_index import SHIPPED, SUFFIX, read_index
from kernelquarry.transforms.decontaminate.ladder import Ladder, render_hits
from kernelquarry.transforms.decontaminate.module_fingerprint import fingerprint_of

BENCHMARK = "kernelbench"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Overlap:
    """`overlap.json`: problems asked, and training rows that overlap any of the benchmark's problems.

    The text of each row is compared here. Operator graphs and behaviours were compared when the dataset was built;
    its `decontamination.json` names the same index then.
    """

    benchmark: str
    index_commit: str  # of the benchmark's repository
    problems: int
    not_in_index: tuple[str, ...]  # problems of which the index has none of that number
    rows: int  # of the training split
    overlapping: tuple[str, ...]  # "row: evidence"
    built_with_index: bool  # the dataset names an index of the same benchmark and commit


def check_overlap(ids: Sequence[str], trained: Iterable[Pair], datasets: Sequence[Path]) -> Overlap:
    """Compare the training rows with KernelBench. `ids`: of the problems that are asked.

    Raises:
        UserError: the shipped index is of another release.
    """
    header, problems = read_index(SHIPPED / f"{BENCHMARK}{SUFFIX}")
    numbers = {problem.name.partition("_")[0] for problem in problems}
    ladder = Ladder(problems)
    rows = [(pair.id, ladder.climb(fingerprint_of(pair.python_code))) for pair in trained]
    return Overlap(
        benchmark=BENCHMARK,
        index_commit=header.commit,
        problems=len(ids),
        not_in_index=tuple(id for id in sorted(ids) if _number(id) not in numbers),
        rows=len(rows),
        overlapping=tuple(f"{id}: {render_hits(hits)}" for id, hits in rows if hits),
        built_with_index=all(_names_index(dataset, header.commit) for dataset in datasets),
    )


def _number(id: str) -> str:
    """`level1/19` of `1-019_ReLU`: the index names files, some of which have another name in the dataset on the Hub."""
    level, _, rest = id.partition("-")
    return f"level{level}/{int(rest.partition('_')[0])}"


def _names_index(dataset: Path, commit: str) -> bool:
    try:
        entries = json.loads((dataset / "decontamination.json").read_text())["benchmarks"]
    except (OSError, ValueError, KeyError):
        return False
    return any((entry["benchmark"], entry["commit"]) == (BENCHMARK, commit) for entry in entries)


def write_overlap(folder: Path, overlap: Overlap) -> None:
    """Write `overlap.json`, and warn if something overlaps."""
    write_text(folder / "overlap.json", json.dumps(asdict(overlap), indent=1) + "\n")
    if overlap.overlapping or overlap.not_in_index or not overlap.built_with_index:
        _logger.warning(
            "%d training rows overlap %s, %d problems are in no index: see %s",
            len(overlap.overlapping), overlap.benchmark, len(overlap.not_in_index), folder / "overlap.json",
        )  # fmt: skip
