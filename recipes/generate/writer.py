"""Kernels for a module, written by a model and shown right: the one class that users of a model need.

from kernelquarry.recipes import KernelWriter
for candidate in KernelWriter("out/train/smollm2-135m/grpo/model").generate_triton(code, n=10, verify=True):
    print(candidate.code, candidate.judgement)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from kernelquarry.pipeline.prompts import kernel_request, read_answer
from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome
from kernelquarry.pipeline.schema.records import Row, Timing
from kernelquarry.recipes.config import EvaluationSection
from kernelquarry.recipes.judge.judge_answer import Judgement, judge_code
from kernelquarry.recipes.judge.speedup import timing
from kernelquarry.recipes.judge.verify_task import row_of_source

from .samplers import open_sampler


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer of the model."""

    code: str  # "" if the answer has no block of code
    text: str  # the whole answer
    judgement: Judgement | None  # None if it was not asked for
    timing: Timing | None = None  # on a GPU, if that was asked for and the candidate is right

    @property
    def id(self) -> str:
        return self.code[:40]

    def __str__(self) -> str:
        if self.judgement is None:
            return "not verified"
        if not self.judgement.passes:
            return f"{self.judgement.why}: {self.judgement.evidence}".rstrip(": ")
        told = f"verified, {self.judgement.purity}"
        return f"{told}, {self.timing.over_eager:.2f} times as fast as eager" if self.timing else told


class KernelWriter:
    """A context manager; the sandbox starts when something is verified for the first time."""

    def __init__(
        self,
        model: str,
        endpoint: str = "",
        section: EvaluationSection | None = None,
        settings: SandboxSettings | None = None,
    ) -> None:
        """`model`: a folder, an id on the Hub, `package:NAME`, or a model's name at an OpenAI-compatible `endpoint`.

        Raises: UserError: there is no such model.
        """
        self._sampler = open_sampler(model, section or EvaluationSection(batch=16), endpoint)
        self._settings = settings or SandboxSettings()
        self._sandbox: Sandbox | None = None

    def generate_triton(self, code: str, n: int = 1, verify: bool = False, time: bool = False) -> list[Candidate]:
        """`n` candidates for the module in `code`, which defines `Model`, `get_inputs()` and `get_init_inputs()`.

        With `verify` each has a judgement, and the best come first: those that are right, the fastest before others if
        `time`, then by how far they came. Equal answers are verified once.

        Raises: UserError: the endpoint does not answer, or the module does not run.
        """
        row = row_of_source("the module", code, self.sandbox) if verify or time else None
        answers = [sampled.text for sampled in self._sampler.sample([kernel_request(code)] * n)]
        if row is None:
            return [Candidate(read_answer(text), text, None) for text in answers]
        return self.judge(row, answers, time)

    def judge(self, row: Row, answers: Sequence[str], time: bool = False) -> list[Candidate]:
        """The answers to a module with their judgements, the best first."""
        known: dict[str, Candidate] = {}
        for text in answers:
            candidate = Candidate(read_answer(text), text, None)
            if candidate.code not in known:
                outcome = run_guarded(_judged, candidate, row, self.sandbox, time)
                known[candidate.code] = _told(outcome, candidate)
        found = [known[read_answer(text)] for text in answers]
        return sorted(found, key=_rank, reverse=True)

    def stream(self, code: str) -> Iterator[str]:
        """One answer, in parts, as it is written."""
        return self._sampler.stream(kernel_request(code))

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = Sandbox(self._settings)
        return self._sandbox

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def __enter__(self) -> KernelWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _judged(candidate: Candidate, row: Row, sandbox: Sandbox, time: bool) -> Outcome[Candidate]:
    judgement = judge_code(candidate.code, row, sandbox)
    timed = timing(judgement, row, sandbox) if time else None
    return Kept(Candidate(candidate.code, candidate.text, judgement, timed))


def _told(outcome: Outcome[Candidate], candidate: Candidate) -> Candidate:
    if isinstance(outcome, Kept):
        return outcome.record
    assert isinstance(outcome, Errored)
    evidence = f"{outcome.error}: {outcome.message}"
    return Candidate(candidate.code, candidate.text, Judgement(candidate.code, evidence=evidence))


def _rank(candidate: Candidate) -> tuple[int, float]:
    step = candidate.judgement.step if candidate.judgement else 0
    return int(step), candidate.timing.over_eager if candidate.timing else 0.0
