"""Evaluation of a model on a suite: answers are verified while the model writes further ones."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelquarry.pipeline.check import Checker
from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxSettings, Status
from kernelquarry.pipeline.sandbox.jobs.score_kernelbench import (
    SCORE_KERNELBENCH,
    SCORE_KERNELBENCH_GPU,
    KernelbenchRequest,
)
from kernelquarry.pipeline.schema.jsonl_append import add_line
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row
from kernelquarry.recipes.generate.samplers import Sampler
from kernelquarry.recipes.judge.judge_answer import Step, judge_code, judge_settings, speedup
from kernelquarry.recipes.judge.sandbox_pool import SandboxPool
from kernelquarry.transforms.verify import Task
from kernelquarry.transforms.verify.execution import trace
from kernelquarry.transforms.verify.task import Call

from .answers import Answer, Score, read_records, write_answers
from .problems import AnyProblem, Problem
from .score_tritonbench import score_tritonbench

_logger = logging.getLogger(__name__)
STRICT, NAIVE = 1e-4, 1e-2  # tolerances for float32: KernelBench's today, and a common looser one
_TRIALS = 5
_LIMITS = Limits(wall_s=60.0, cpu_s=60, memory_mb=16 << 10)
_NOT_CONSTRUCTED = (Reason.DOES_NOT_LOAD, Reason.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """Scored answers: all, or as many to each problem as were scored. Both times are 0 if it was continued."""

    answers: list[Answer]
    scores: list[Score]  # of these answers
    done: bool
    writing_s: float
    judging_s: float  # after the last answer was written


@dataclass(frozen=True, slots=True)
class _ScoreTask:
    id: str
    problem: AnyProblem
    answer: Answer
    timed: bool
    weaker_checks: bool


def evaluate(
    problems: Sequence[AnyProblem],
    sampler: Sampler,
    samples: int,
    folder: Path,
    settings: SandboxSettings,
    timed: bool = False,
    weaker_checks: bool = True,
    end: float = math.inf,
) -> EvaluationRun:
    """Write and score `samples` answers to each problem in `folder`; answers and scores that are there are reused.

    Args:
        timed: time the first answer to each problem, if it is right.
        weaker_checks: also score by the benchmark's own check and by the naive one.
        end: time of `time.monotonic()` at which to stop; the next call goes on.

    Raises:
        UserError: the model cannot be sampled; the answers so far are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_id = {problem.id: problem for problem in problems}
    path = folder / "scores.jsonl"
    known = {(score.problem, score.sample): score for score in read_records(path, Score)}
    answers: list[Answer] = []
    pending: dict[tuple[str, int], Future[Score]] = {}
    first: dict[tuple[str, str], tuple[str, int]] = {}  # (problem, code) -> the first answer with this code
    started, is_whole = time.monotonic(), not (folder / "answers.jsonl").exists()
    with SandboxPool(settings, exclusive=timed) as pool, ThreadPoolExecutor(settings.workers) as threads:
        try:
            for answer in write_answers(folder / "answers.jsonl", problems, samples, sampler, end):
                answers.append(answer)
                key = answer.problem, answer.sample
                if key not in known and time.monotonic() < end:
                    is_timed = timed and not key[1]
                    task = _ScoreTask(f"{key[0]}#{key[1]}", by_id[answer.problem], answer, is_timed, weaker_checks)
                    equal = pending.get(first.setdefault((key[0], read_answer(answer.text)), key))
                    pending[key] = threads.submit(_score_and_write, task, pool, path, equal)
            written = time.monotonic()
            wait(pending.values(), None if end == math.inf else max(0.0, end - written))
        finally:
            threads.shutdown(cancel_futures=True)
    for key, future in pending.items():
        with suppress(CancelledError):  # only after `end`
            known[key] = future.result()
    ended = time.monotonic()
    even = _even_samples(problems, samples, known)
    answers = [answer for answer in answers if answer.sample < even]
    scores = [known[answer.problem, answer.sample] for answer in answers]
    times = is_whole * (written - started), is_whole * (ended - written)
    return EvaluationRun(answers, scores, even == samples, *times)


def _even_samples(problems: Sequence[AnyProblem], samples: int, known: Mapping[tuple[str, int], Score]) -> int:
    """The number of samples of which every problem has a score: short answers, which end first, are no fair sample."""
    whole = (sample for sample in range(samples) if any((problem.id, sample) not in known for problem in problems))
    return next(whole, samples)


def _score_and_write(task: _ScoreTask, pool: SandboxPool, path: Path, equal: Future[Score] | None) -> Score:
    """Score an answer, and append the score to `path`. `equal`: the score of an earlier answer with the same code."""
    known = equal.result() if equal is not None else None
    outcome: Outcome[Score]
    if known is not None and known.why != "errored":
        outcome = Kept(replace(known, sample=task.answer.sample))
    else:
        outcome = pool.run(_score, task)
    if isinstance(outcome, Kept):
        score: Score = outcome.record
        add_line(path, asdict(score))
        return score
    assert isinstance(outcome, Errored)  # not written, so that the next run tries again
    _logger.warning("%s could not be judged: %s: %s", task.id, outcome.error, outcome.message)
    evidence = f"{outcome.error}: {outcome.message}"
    return Score(task.answer.problem, task.answer.sample, "errored", "", False, evidence, 0.0, False, False)


def _score(task: _ScoreTask, sandbox: Sandbox) -> Outcome[Score]:
    if not isinstance(task.problem, Problem):
        return Kept(score_tritonbench(task.problem, task.answer, sandbox, task.timed))
    row, code = task.problem.row, read_answer(task.answer.text)
    if task.problem.by_check:
        return Kept(_score_by_check(task, row, code, sandbox))
    judgement = judge_code(code, row, sandbox, task.problem.general)
    compiled, tolerances = judgement.step >= Step.LOADS, list[float]()
    if task.weaker_checks and not (judgement.reason is Reason.DOES_NOT_RUN and raises_at_once(code, row, sandbox)):
        compiled, tolerances = score_kernelbench(judgement.code, judgement.reason, row.python_code, sandbox)
    return Kept(
        Score(
            problem=task.answer.problem,
            sample=task.answer.sample,
            why=judgement.why,
            hack=judgement.hack,
            compiled=compiled or judgement.step >= Step.LOADS,
            evidence=judgement.evidence,
            speedup=speedup(judgement, row, sandbox, task.problem.general) if task.timed else 0.0,
            others=STRICT in tolerances,
            naive=NAIVE in tolerances and "@triton.jit" in code,
        )
    )


def _score_by_check(task: _ScoreTask, row: Row, code: str, sandbox: Sandbox) -> Score:
    """The score of an answer to a problem that may be too large to run."""
    verdict = _checker(sandbox, task.timed).check(row.python_code, code)
    compiled, tolerances = verdict.step >= Step.LOADS, list[float]()
    if task.weaker_checks:
        compiled, tolerances = score_kernelbench(code, verdict.cause, row.python_code, sandbox)
    return Score(
        problem=task.answer.problem,
        sample=task.answer.sample,
        why="" if verdict else verdict.reason or verdict.status.value,
        hack=verdict.hack,
        compiled=compiled,
        evidence=verdict.evidence,
        speedup=verdict.speedup,
        others=STRICT in tolerances,
        naive=NAIVE in tolerances and "@triton.jit" in code,
    )


@functools.lru_cache(maxsize=2)
def _checker(sandbox: Sandbox, timed: bool) -> Checker:
    """A checker that remembers the modules that it has read."""
    return Checker(sandbox=sandbox, timed=timed)


def raises_at_once(code: str, row: Row, sandbox: Sandbox) -> bool:
    """True if the first call raises before a kernel runs. KernelBench's check would raise too; it is skipped then,
    since it costs a CUDA context."""
    if sandbox.gpus is None:
        return False
    task = replace(Task.of_row(row), triton_code=code)
    call = Call.of(task, task.workloads[0], 0, "normal")
    report = trace(call.task, [call.trial], sandbox.gpus.description.target, sandbox, judge_settings(sandbox).limits)
    return report.status is Status.RAISED


def score_kernelbench(code: str, reason: Reason | None, python_code: str, sandbox: Sandbox) -> tuple[bool, list[float]]:
    """KernelBench's check: True if the answer is constructed in the reference's process, and the tolerances it meets.

    Answers without a class `ModelNew`, and answers that our verifier could not construct in time, are not run.

    Args:
        reason: why our verifier rejects the answer.
    """
    if "class ModelNew" not in code or reason in _NOT_CONSTRUCTED:
        return False, []
    request = KernelbenchRequest(python_code, code, _TRIALS, (STRICT, NAIVE))
    if sandbox.gpus is None:
        report = sandbox.run(Job(SCORE_KERNELBENCH, request, {}, _LIMITS))
    else:
        with sandbox.gpus.share() as gpu:
            report = sandbox.run(Job(SCORE_KERNELBENCH_GPU, replace(request, gpu=gpu), {}, _LIMITS))
    return (report.reply.compiled, [*report.reply.tolerances]) if report.reply else (False, [])
