"""Judgement and timing of a model's answer to a row's module, by the stages that make the dataset."""

from __future__ import annotations

from dataclasses import replace

from kernelquarry.pipeline.check.checker import time_answer
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.compile import COMPILE
from kernelquarry.pipeline.sandbox.jobs.perturbed import PERTURBED
from kernelquarry.pipeline.sandbox.jobs.reference import REFERENCE
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET
from kernelquarry.pipeline.sandbox.jobs.trace import TRACE
from kernelquarry.pipeline.schema.outcome import Dropped, Errored
from kernelquarry.pipeline.schema.records import Row
from kernelquarry.transforms.verify import Task, VerifySettings, answer
from kernelquarry.transforms.verify.answer import Judgement, Step

__all__ = ["Judgement", "Step"]

_WALL_S = 30.0  # of a guest: a slower answer fails
_GPU_CPU_S = 10  # of a guest with a GPU: a hanging kernel blocks the GPU for all others until then


def judge_settings(sandbox: Sandbox) -> VerifySettings:
    """The verifier's settings for the dataset, without counter-examples, which only explain a verdict.

    Without a GPU the candidate is also compiled for one target, since the interpreter accepts code that no compiler
    does.
    """
    target, cpu_s = ("", _GPU_CPU_S) if sandbox.gpus else (None, int(_WALL_S))
    return VerifySettings(target, find_counterexamples=False, limits=Limits(wall_s=_WALL_S, cpu_s=cpu_s))


def guest_kinds(sandbox: Sandbox) -> tuple[str, ...]:
    """Kinds of guests that a judgement needs, for `Sandbox.start`."""
    return tuple(kind.name for kind in (REFERENCE, TRACE if sandbox.gpus else COMPILE, INTERPRET, PERTURBED))


def judge_code(code: str, row: Row, sandbox: Sandbox, general: bool = True) -> Judgement:
    """Judge an answer's code ("" if it has none). `general`: it must accept inputs of other sizes too."""
    task = replace(Task.of_row(row), shape_general=general)
    judgement = answer.judge_code(code, task, sandbox, judge_settings(sandbox))
    return replace(judgement, planners=())  # they cannot be pickled, and only further calls need them


def errored_judgement(code: str, outcome: Dropped | Errored) -> Judgement:
    """The judgement of an answer that the verifier failed on."""
    assert isinstance(outcome, Errored)  # judging drops nothing
    return Judgement(code, evidence=f"{outcome.error}: {outcome.message}")


def speedup(judgement: Judgement, row: Row, sandbox: Sandbox, general: bool = True) -> float:
    """Speedup over eager; 0 if the answer was not timed or the timing is suspect."""
    measured = time_answer(judgement, row, sandbox, general)
    return measured.over_eager if measured is not None and not measured.suspect else 0.0
