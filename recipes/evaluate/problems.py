"""Suites of problems: our own test split, a small embedded one, and benchmarks read from where they are."""

from __future__ import annotations

import logging
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kernelquarry.pipeline.prompts import Message, kernel_request
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Row
from kernelquarry.recipes.judge.verify_task import row_of_source
from kernelquarry.recipes.train.data import load_pairs, mined, split_of

from .kernelbench import read_kernelbench
from .scripted import ScriptProblem
from .tritonbench import read_tritonbench

_logger = logging.getLogger(__name__)
EMBEDDED = Path(__file__).parent / "suites" / "embedded.toml"
SUITES = ("test", "embedded", "kernelbench", "tritonbench-g", "tritonbench-t")


@dataclass(frozen=True, slots=True)
class Problem:
    """A module to be written, and what its answers are verified against."""

    id: str
    level: str  # "" where a suite has none
    row: Row
    general: bool  # answers must take other sizes too, as the prompt of our own rows says

    @property
    def chat(self) -> list[Message]:
        return kernel_request(self.row.python_code)


AnyProblem: TypeAlias = Problem | ScriptProblem


def read_suite(
    name: str, source: str, levels: Sequence[int], limit: int, sandbox: Sandbox, held_out: float = 0.0
) -> Sequence[AnyProblem]:
    """The problems of a suite, by level and id, the first `limit` of each level unless that is 0.

    Args:
        held_out: share of the dataset's clusters that "test" is of, in place of its own test split; 0 keeps that.
        source: a dataset for "test"; for a benchmark its checkout, or "" for the Hub if it is there.

    Raises:
        UserError: there is no such suite, or it cannot be read.
    """
    if name == "test":
        pairs = mined(split_of(load_pairs(source, held_out), "test"))
        return [Problem(pair.id, "", pair, True) for pair in pairs][: limit or None]
    if name == "embedded":
        entries = sorted(tomllib.loads(EMBEDDED.read_text()).items())[: limit or None]
        return [Problem(name, "", row_of_source(name, entry["code"], sandbox), True) for name, entry in entries]
    if name == "kernelbench":
        found = read_kernelbench(source, levels)
        taken = [each for level in levels for each in [e for e in found if e.level == level][: limit or None]]
        return [Problem(e.id, f"level {e.level}", row_of_source(e.id, e.code, sandbox), False) for e in taken]
    if name in SUITES:
        scripts = read_tritonbench(source, name[-1].upper())[: limit or None]
        return [ScriptProblem(script.id, "", script) for script in scripts]
    raise UserError(f"--suite {name}: there are {', '.join(SUITES)}")


def short(
    problems: Sequence[AnyProblem], tokens: Callable[[list[Message]], int], longest: int, limit: int
) -> Sequence[AnyProblem]:
    """Those whose prompt has at most `longest` tokens, the first `limit` of each level unless that is 0.

    Raises:
        UserError: there is none.
    """
    fitting = [problem for problem in problems if tokens(problem.chat) <= longest]
    if not fitting:
        raise UserError(f"all {len(problems)} prompts are longer than --prompt-tokens {longest} allows: raise it")
    _logger.info("%d problems; %d with longer prompts left out", len(fitting), len(problems) - len(fitting))
    taken: Counter[str] = Counter()
    found = []
    for problem in fitting:
        taken[problem.level] += 1
        if not limit or taken[problem.level] <= limit:
            found.append(problem)
    return found
