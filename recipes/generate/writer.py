"""`KernelWriter`: kernels for a module, written by a model and verified.

from kernelquarry.recipes import KernelWriter
for candidate in KernelWriter("out/train/smollm2-135m/grpo/model").generate_triton(code, n=10, verify=True):
    print(candidate.code, candidate.judgement)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelquarry.pipeline.check.checker import time_answer
from kernelquarry.pipeline.dataset.chat_rows import module_prompt
from kernelquarry.pipeline.prompts import kernel_request, read_answer
from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.closing import Closing
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Row, Timing
from kernelquarry.recipes.config import EvaluationSection
from kernelquarry.recipes.judge.judge_answer import Judgement, errored_judgement, judge_code
from kernelquarry.recipes.judge.verify_task import row_of_source

from .samplers import open_sampler


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer of the model."""

    code: str  # "" if the answer has no block of code
    text: str  # the whole answer
    judgement: Judgement | None  # None if it was not verified
    timing: Timing | None = None  # of a right candidate, if it was to be timed and there is a GPU

    @property
    def id(self) -> str:
        return self.code[:40]

    def __str__(self) -> str:
        if self.judgement is None:
            return "not verified"
        if not self.judgement.passes:
            return f"{self.judgement.why}: {self.judgement.evidence}".rstrip(": ")
        speed = f", {self.timing.over_eager:.2f} times as fast as eager" if self.timing else ""
        return f"verified, {self.judgement.purity}{speed}"


class KernelWriter(Closing):
    """A context manager that writes kernels. Its sandbox starts with the first verification."""

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
        """Write `n` candidates for the module in `code`, which defines `Model`, `get_inputs()`, `get_init_inputs()`.

        With `verify` or `time` the candidates have judgements and are sorted as by `judge`.

        Raises: UserError: the endpoint does not answer, or the module does not run.
        """
        row = row_of_source("the module", code, self.sandbox) if verify or time else None
        request = module_prompt(row) if row else kernel_request(code)
        answers = [sampled.text for sampled in self._sampler.sample([request] * n)]
        if row is None:
            return [Candidate(read_answer(text), text, None) for text in answers]
        return self.judge(row, answers, time)

    def judge(self, row: Row, answers: Sequence[str], time: bool = False) -> list[Candidate]:
        """Judge answers to a module, each distinct code once. The furthest steps come first, then the fastest."""
        known: dict[str, Candidate] = {}
        for text in answers:
            candidate = Candidate(read_answer(text), text, None)
            if candidate.code not in known:
                outcome = run_guarded(_judge, candidate, row, self.sandbox, time)
                if not isinstance(outcome, Kept):
                    outcome = Kept(replace(candidate, judgement=errored_judgement(candidate.code, outcome)))
                known[candidate.code] = outcome.record
        return sorted((known[read_answer(text)] for text in answers), key=_rank, reverse=True)

    def stream(self, code: str) -> Iterator[str]:
        """Yield one answer in parts as it is generated."""
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


def _judge(candidate: Candidate, row: Row, sandbox: Sandbox, time: bool) -> Outcome[Candidate]:
    judgement = judge_code(candidate.code, row, sandbox)
    timing = time_answer(judgement, row, sandbox) if time else None
    return Kept(replace(candidate, judgement=judgement, timing=timing))


def _rank(candidate: Candidate) -> tuple[int, float]:
    step = candidate.judgement.step if candidate.judgement else 0
    return int(step), candidate.timing.over_eager if candidate.timing else 0.0
