"""Files of an evaluation: JSON lines of answers and scores, appended to, so that a killed evaluation continues."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.recipes.generate.samplers import Sampler

if TYPE_CHECKING:
    from .problems import AnyProblem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """One line of `answers.jsonl`."""

    problem: str
    sample: int
    text: str
    tokens: int
    cut: bool  # stopped at the limit of tokens


@dataclass(frozen=True, slots=True)
class Score:
    """One line of `scores.jsonl`: the verdict of our verifier, and those of weaker checks."""

    problem: str
    sample: int
    why: str  # code of the reason for which the answer fails, "" if it passes
    hack: str  # class of the hack, "" if it is none
    compiled: bool  # it was constructed; for TritonBench: its test ended without an exception
    evidence: str
    speedup: float  # over eager, 0 if it was not timed
    others: bool  # right by the benchmark's own check: TritonBench's for its problems, KernelBench's for all else
    naive: bool  # has "@triton.jit" and is within 1e-2 on the inputs of the prompt


def read_records(path: Path, kind: type[T]) -> list[T]:
    """The complete lines of a file. Raises: UserError: the lines have other fields."""
    try:
        return [kind(**line) for line in read_lines(path)]
    except TypeError as error:
        raise UserError(f"{path} is not of an evaluation of this release ({error}): give another --out") from None


def write_answers(
    path: Path, problems: Sequence[AnyProblem], samples: int, sampler: Sampler, end: float = math.inf
) -> Iterator[Answer]:
    """Yield the answers in the file, then sample those that are missing; each is written before it is yielded.

    The first answers to all problems come before the second ones, so that an evaluation that `end`, a time of
    `time.monotonic()`, cuts short is fair.
    """
    known = {(answer.problem, answer.sample): answer for answer in read_records(path, Answer)}
    wanted = [(problem, sample) for sample in range(samples) for problem in problems]
    missing = [(problem, sample) for problem, sample in wanted if (problem.id, sample) not in known]
    yield from (known[problem.id, sample] for problem, sample in wanted if (problem.id, sample) in known)
    if not missing or time.monotonic() > end:
        return
    for sampled in sampler.sample([problem.chat for problem, _ in missing], seed=len(known)):
        problem, sample = missing[sampled.index]
        answer = Answer(problem.id, sample, sampled.text, sampled.tokens, sampled.cut)
        add_line(path, asdict(answer))
        yield answer
        if time.monotonic() > end:
            return
