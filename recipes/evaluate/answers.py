"""Answers and what became of them, as lines of JSON that are added to: an evaluation that was killed goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.recipes.generate.samplers import Sampler

T = TypeVar("T")


class Asked(Protocol):
    """A problem of any suite."""

    @property
    def id(self) -> str: ...

    @property
    def chat(self) -> list[Message]: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """One line of `answers.jsonl`."""

    problem: str
    sample: int
    text: str
    tokens: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Score:
    """One line of `scores.jsonl`: what our verifier says, and what others would."""

    problem: str
    sample: int
    why: str  # code of the reason why it does not pass, "" if it does
    hack: str  # class of the hack that it is
    compiled: bool  # it was constructed; of TritonBench, its test ended without an exception
    evidence: str
    speedup: float  # over eager, 0 if it was not timed
    others: bool  # right as others score: TritonBench its own problems, KernelBench all else
    naive: bool  # has the keyword, and is within 1e-2 on the inputs that it was shown


def read_records(path: Path, kind: type[T]) -> list[T]:
    """The whole lines of a file. Raises: UserError: they are of something else."""
    try:
        return [kind(**line) for line in read_lines(path)]
    except TypeError as error:
        raise UserError(f"{path} is not of an evaluation of this release ({error}): give another --out") from None


def write_answers(path: Path, problems: Sequence[Asked], samples: int, sampler: Sampler) -> Iterator[Answer]:
    """Those that are there, and then those that are missing, each written before it is handed out."""
    known = {(answer.problem, answer.sample): answer for answer in read_records(path, Answer)}
    wanted = [(problem, sample) for problem in problems for sample in range(samples)]
    missing = [(problem, sample) for problem, sample in wanted if (problem.id, sample) not in known]
    yield from (known[problem.id, sample] for problem, sample in wanted if (problem.id, sample) in known)
    for sampled in sampler.sample([problem.chat for problem, _ in missing], seed=len(known)):
        problem, sample = missing[sampled.index]
        answer = Answer(problem.id, sample, sampled.text, sampled.tokens, sampled.cut)
        add_line(path, asdict(answer))
        yield answer
