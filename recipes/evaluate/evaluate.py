"""A model on a suite: answers are written, each is verified while others are written, and all is counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxSettings, Status
from kernelquarry.pipeline.sandbox.jobs.score_kernelbench import (
    SCORE_KERNELBENCH,
    SCORE_KERNELBENCH_GPU,
    KernelBenchRequest,
)
from kernelquarry.pipeline.schema.jsonl_append import add_line
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row
from kernelquarry.recipes.generate.samplers import Sampler
from kernelquarry.recipes.judge.judge_answer import Judgement, Step, judge_code, judge_settings
from kernelquarry.recipes.judge.sandbox_pool import Benches
from kernelquarry.recipes.judge.speedup import speedup
from kernelquarry.transforms.verify import Task
from kernelquarry.transforms.verify.execution import trace
from kernelquarry.transforms.verify.task import Call

from .answers import Answer, Score, read_records, write_answers
from .problems import AnyProblem, Problem
from .scripted import score_script

_logger = logging.getLogger(__name__)
STRICT, NAIVE = 1e-4, 1e-2  # KernelBench's tolerance of float32 today, and what many others use
_TRIALS = 5
_LOOSE = Limits(wall_s=60.0, cpu_s=60, memory_mb=16 << 10)
_NEVER = (Reason.DOES_NOT_LOAD, Reason.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The lines of an evaluation, and where its time went: 0 if a call before had begun it, whose time is not known."""

    answers: list[Answer]
    scores: list[Score]
    writing_s: float
    judging_s: float  # after the last answer was there


@dataclass(frozen=True, slots=True)
class _Answered:
    id: str
    problem: AnyProblem
    answer: Answer
    timed: bool


def evaluate(
    problems: Sequence[AnyProblem],
    sampler: Sampler,
    samples: int,
    folder: Path,
    settings: SandboxSettings,
    timed: bool = False,
) -> Evaluated:
    """Answers and scores in `folder`, what is there already included. `timed`: first answers are timed, if right.

    Raises: UserError: answers cannot be had; those that came are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_id = {problem.id: problem for problem in problems}
    path = folder / "scores.jsonl"
    known = {(score.problem, score.sample): score for score in read_records(path, Score)}
    answers: list[Answer] = []
    pending: dict[tuple[str, int], Future[Score]] = {}
    first: dict[tuple[str, str], tuple[str, int]] = {}  # answer to a problem with the same code
    begun, whole = time.monotonic(), not (folder / "answers.jsonl").exists()
    with Benches(settings, alone=timed) as benches, ThreadPoolExecutor(settings.workers) as threads:
        try:
            for answer in write_answers(folder / "answers.jsonl", problems, samples, sampler):
                answers.append(answer)
                key = answer.problem, answer.sample
                if key not in known:
                    answered = _Answered(f"{key[0]}#{key[1]}", by_id[answer.problem], answer, timed and not key[1])
                    equal = pending.get(first.setdefault((key[0], read_answer(answer.text)), key))
                    pending[key] = threads.submit(_guarded, answered, benches, path, equal)
            written = time.monotonic()
            known |= {key: future.result() for key, future in pending.items()}
        finally:
            threads.shutdown(cancel_futures=True)
    ended = time.monotonic()
    scores = [known[answer.problem, answer.sample] for answer in answers]
    return Evaluated(answers, scores, whole * (written - begun), whole * (ended - written))


def _guarded(asked: _Answered, benches: Benches, path: Path, equal: Future[Score] | None) -> Score:
    """`equal`: the score of an answer with the same code, which went in before."""
    known = equal.result() if equal is not None else None
    outcome: Outcome[Score]
    if known is not None and known.why != "errored":
        outcome = Kept(replace(known, sample=asked.answer.sample))
    else:
        outcome = benches.run(_score, asked)
    if isinstance(outcome, Kept):
        score: Score = outcome.record
        add_line(path, asdict(score))
        return score
    assert isinstance(outcome, Errored)  # not written: the next run tries again
    _logger.warning("%s could not be judged: %s: %s", asked.id, outcome.error, outcome.message)
    evidence = f"{outcome.error}: {outcome.message}"
    return Score(asked.answer.problem, asked.answer.sample, "errored", "", False, evidence, 0.0, False, False)


def _score(asked: _Answered, sandbox: Sandbox) -> Outcome[Score]:
    if not isinstance(asked.problem, Problem):
        return score_script(asked.problem, asked.answer, sandbox, asked.timed)
    row, code = asked.problem.row, read_answer(asked.answer.text)
    judgement = judge_code(code, row, sandbox, asked.problem.general)
    raises = judgement.reason is Reason.DOES_NOT_RUN and raises_at_once(code, row, sandbox)
    compiled, within = (True, []) if raises else loose(judgement, row.python_code, sandbox)
    return Kept(
        Score(
            problem=asked.answer.problem,
            sample=asked.answer.sample,
            why=judgement.why,
            hack=judgement.hack,
            compiled=compiled or judgement.step >= Step.LOADS,
            evidence=judgement.evidence,
            speedup=speedup(judgement, row, sandbox, asked.problem.general) if asked.timed else 0.0,
            others=STRICT in within,
            naive=NAIVE in within and "@triton.jit" in code,
        )
    )


def raises_at_once(code: str, row: Row, sandbox: Sandbox) -> bool:
    """Whether the first call raises before a kernel runs: so it does in the reference's process, which needs not be
    asked at the cost of a CUDA context."""
    if sandbox.gpus is None:
        return False
    task = replace(Task.of_row(row), triton_code=code)
    call = Call.of(task, task.workloads[0], 0, "normal")
    report = trace(call.task, [call.trial], sandbox.gpus.description.target, sandbox, judge_settings(sandbox).limits)
    return report.status is Status.RAISED


def loose(judgement: Judgement, python_code: str, sandbox: Sandbox) -> tuple[bool, list[float]]:
    """Whether the answer is constructed in the reference's process, and the tolerances within which it is right there.

    Code that does not parse, or has no class to construct, is not tried, nor is what hangs or is not constructed here.
    """
    if "class ModelNew" not in judgement.code or judgement.reason in _NEVER:
        return False, []
    request = KernelBenchRequest(python_code, judgement.code, _TRIALS, (STRICT, NAIVE))
    if sandbox.gpus is None:
        report = sandbox.run(Job(SCORE_KERNELBENCH, request, {}, _LOOSE))
    else:
        with sandbox.gpus.share() as gpu:
            report = sandbox.run(Job(SCORE_KERNELBENCH_GPU, replace(request, gpu=gpu), {}, _LOOSE))
    return (report.reply.compiled, [*report.reply.tolerances]) if report.reply else (False, [])
