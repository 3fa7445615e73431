"""Reader of KernelBench's problems from a checkout or from the Hub. Its text is never copied into our files."""

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
class KernelbenchProblem:
    level: int
    number: int
    name: str
    code: str

    @property
    def id(self) -> str:
        return f"{self.level}-{self.number:03d}_{self.name}"


def read_kernelbench(source: str, levels: Sequence[int]) -> list[KernelbenchProblem]:
    """The problems by level and number. `source`: a folder with `level1` at any depth, or "" for the Hub.

    Raises:
        UserError: there are no such problems, or the Hub cannot be read.
    """
    problems = _from_folder(Path(source), levels) if source else _from_hub(levels)
    if not problems:
        raise UserError(f"{source or _HUB}: no problems of level {', '.join(map(str, levels))}: give a checkout")
    return sorted(problems, key=lambda problem: (problem.level, problem.number))


def _from_folder(folder: Path, levels: Sequence[int]) -> list[KernelbenchProblem]:
    return [
        KernelbenchProblem(level, int(match[1]), match[2], path.read_text())
        for level in levels
        for path in sorted(folder.rglob(f"level{level}/*.py"))
        if (match := _FILE.fullmatch(path.name))
    ]


def _from_hub(levels: Sequence[int]) -> list[KernelbenchProblem]:
    from datasets import load_dataset

    try:
        splits = {level: load_dataset(_HUB, split=f"level_{level}") for level in levels}
    except (OSError, ValueError) as error:
        raise UserError(f"{_HUB}: {str(error).strip().splitlines()[0]}: give a checkout with --source") from None
    return [
        KernelbenchProblem(
            level, int(row["problem_id"]), str(row["name"]).partition("_")[2] or row["name"], row["code"]
        )
        for level, rows in splits.items()
        for row in rows
    ]
