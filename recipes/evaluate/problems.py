"""Suites of problems: held-out rows of a dataset, a small embedded suite, KernelBench and TritonBench."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from kernelquarry.pipeline.check.kernelbench import read_kernelbench
from kernelquarry.pipeline.dataset.chat_rows import module_prompt
from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Row
from kernelquarry.recipes.judge.verify_task import row_of_shapes, row_of_source
from kernelquarry.recipes.train.data import load_pairs, split_of, trainable, without_composed

from .held_out import PROBLEMS, Seen, stratum
from .held_out import held_out as frozen
from .tritonbench import TritonbenchProblem, read_tritonbench

_logger = logging.getLogger(__name__)
EMBEDDED = Path(__file__).parent / "suites" / "embedded.toml"
FROZEN = ("modules", "slices", "easy")
DATASET_SUITES = (*FROZEN, "test")
OWN_SUITES = (*DATASET_SUITES, "embedded")
SUITES = (*OWN_SUITES, "kernelbench", "tritonbench-g", "tritonbench-t")
_READERS = 32  # threads, which wait for the sandbox's guests
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """A module to write a kernel for, and the row that verifies answers."""

    id: str
    level: str  # "" where a suite has no levels
    row: Row
    general: bool  # answers must accept inputs of other sizes, as the row's own kernel does
    labels: tuple[str, ...] = ()  # further groups whose results are reported apart
    # The module may be too large to run: answers are judged as `kernelquarry check` does, at sizes that fit.
    by_check: bool = False

    @property
    def chat(self) -> list[Message]:
        return module_prompt(self.row, self.general)


AnyProblem: TypeAlias = Problem | TritonbenchProblem


def read_suite(
    name: str, source: str, levels: Sequence[int], limit: int, sandbox: Sandbox, held_out: float = 0.0
) -> Sequence[AnyProblem]:
    """The problems of a suite by level and id, the first `limit` of each level unless that is 0.

    Args:
        source: a dataset for DATASET_SUITES; for a benchmark a checkout, or "" for KernelBench on the Hub.
        held_out: share of the dataset's clusters that replaces its test split; 0 keeps the split.

    Raises:
        UserError: there is no such suite, or it cannot be read.
    """
    if name in FROZEN:
        pairs = load_pairs(source, held_out)
        seen = Seen.of(trainable(pairs))
        found = frozen(pairs, name, limit or PROBLEMS)
        return [
            Problem(pair.id, "", pair, pair.shape_general, tuple(filter(None, (seen.label(pair), stratum(pair)))))
            for pair in found
        ]
    if name == "test":
        pairs = without_composed(split_of(load_pairs(source, held_out), "test"))
        return [Problem(pair.id, "", pair, pair.shape_general) for pair in pairs][: limit or None]
    if name == "embedded":
        entries = sorted(tomllib.loads(EMBEDDED.read_text()).items())[: limit or None]
        return [Problem(name, "", row_of_source(name, entry["code"], sandbox), True) for name, entry in entries]
    if name == "kernelbench":
        chosen = _first_of_each_level(read_kernelbench(source, levels), lambda entry: entry.level, limit)
        with ThreadPoolExecutor(_READERS) as threads:
            rows = list(threads.map(lambda entry: _row_or_none(entry.id, entry.code, sandbox), chosen))
        return [
            Problem(entry.id, f"level {entry.level}", row, row.shape_general, by_check=True)
            for entry, row in zip(chosen, rows, strict=True)
            if row
        ]
    if name in SUITES:
        return read_tritonbench(source, name[-1].upper())[: limit or None]
    raise UserError(f"--suite {name}: there are {', '.join(SUITES)}")


def _row_or_none(name: str, code: str, sandbox: Sandbox) -> Row | None:
    """The problem's row; None, with a warning, if it does not run."""
    try:
        return row_of_shapes(name, code, sandbox)
    except UserError as error:
        _logger.warning("left out: %s", error)
        return None


def with_short_prompts(
    problems: Sequence[AnyProblem], tokens: Callable[[list[Message]], int], longest: int, limit: int
) -> Sequence[AnyProblem]:
    """Problems with prompts of at most `longest` tokens, the first `limit` of each level unless that is 0.

    Raises:
        UserError: there is none.
    """
    fitting = [problem for problem in problems if tokens(problem.chat) <= longest]
    if not fitting:
        raise UserError(f"all {len(problems)} prompts are longer than --prompt-tokens {longest} allows: raise it")
    _logger.info("%d problems; %d with longer prompts left out", len(fitting), len(problems) - len(fitting))
    return _first_of_each_level(fitting, lambda problem: problem.level, limit)


def _first_of_each_level(problems: Sequence[T], level_of: Callable[[T], object], limit: int) -> list[T]:
    by_level: dict[object, list[T]] = {}
    for problem in problems:
        by_level.setdefault(level_of(problem), []).append(problem)
    return [problem for level in by_level.values() for problem in level[: limit or None]]
