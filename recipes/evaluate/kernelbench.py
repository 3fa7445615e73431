"""KernelBench's problems, from a checkout of its repository or from the Hub. Its text is read, and never kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

LEVELS = (1, 2, 3, 4)
_HUB = "ScalingIntelligence/KernelBench"
_FILE = re.compile(r"(\d+)_(\w+)\.py")


@dataclass(frozen=True, slots=True)
class Benchmark:
    level: int
    number: int
    name: str
    code: str

    @property
    def id(self) -> str:
        return f"{self.level}-{self.number:03d}_{self.name}"


def read_kernelbench(source: str, levels: Sequence[int]) -> list[Benchmark]:
    """By level and number. `source` is a folder that holds `level1` somewhere, or "" for the Hub.

    Raises:
        UserError: it holds no such problems, or cannot be read.
    """
    found = _from_folder(Path(source), levels) if source else _from_hub(levels)
    if not found:
        raise UserError(f"{source or _HUB}: no problems of level {', '.join(map(str, levels))}")
    return sorted(found, key=lambda each: (each.level, each.number))


def _from_folder(folder: Path, levels: Sequence[int]) -> list[Benchmark]:
    found = []
    for level in levels:
        for path in sorted(folder.rglob(f"level{level}/*.py")):
            if match := _FILE.fullmatch(path.name):
                found.append(Benchmark(level, int(match[1]), match[2], path.read_text()))
    return found


def _from_hub(levels: Sequence[int]) -> list[Benchmark]:
    from datasets import load_dataset

    try:
        splits = {level: load_dataset(_HUB, split=f"level_{level}") for level in levels}
    except (OSError, ValueError) as error:
        told = str(error).strip().splitlines()[0]
        raise UserError(f"{_HUB}: {told}: give a checkout with --source") from None
    return [
        Benchmark(level, int(row["problem_id"]), str(row["name"]).partition("_")[2] or row["name"], row["code"])
        for level, rows in splits.items()
        for row in rows
    ]
