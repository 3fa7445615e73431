"""An answer to a row's module, judged by the function that filters the dataset."""

from __future__ import annotations

from dataclasses import replace

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.schema.records import Row
from kernelquarry.transforms.verify import Task, VerifySettings, answer
from kernelquarry.transforms.verify.answer import Judgement, Step

__all__ = ["Judgement", "Step", "judge_answer", "judge_code", "judge_settings"]

_WALL_S = 30.0  # of a guest: an answer that takes longer is wrong
_GPU_S = 10  # of a processor, or of a GPU, which nobody else has until a kernel that hangs is given up


def judge_settings(sandbox: Sandbox) -> VerifySettings:
    """What the dataset's rows went through, but for what is only shown: counter-examples and mutants.

    Where there is a GPU, the candidate is compiled for it; elsewhere for one target, since the interpreter runs what no
    compiler takes.
    """
    targets, cpu_s = ((), _GPU_S) if sandbox.gpus else (("sm_90",), int(_WALL_S))
    return VerifySettings(targets, find_counterexamples=False, mutants=0, limits=Limits(wall_s=_WALL_S, cpu_s=cpu_s))


def guests(sandbox: Sandbox) -> tuple[str, ...]:
    """Kinds of the guests that an answer meets, for `Sandbox.start`."""
    return ("reference", "trace" if sandbox.gpus else "compile", "interpret", "dry_run")


def judge_answer(text: str, row: Row, sandbox: Sandbox, general: bool = True) -> Judgement:
    """A model's answer to the module of `row`; `general`: it must take other sizes too."""
    return judge_code(read_answer(text), row, sandbox, general)


def judge_code(code: str, row: Row, sandbox: Sandbox, general: bool = True) -> Judgement:
    """See `judge_answer`."""
    asked = replace(Task.of_row(row), shape_general=general)
    return answer.judge_code(code, asked, sandbox, judge_settings(sandbox))
