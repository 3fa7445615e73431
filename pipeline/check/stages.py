"""The stages of a check, as its progress names them."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]  # called with the name of each stage when it starts

STAGES = ("constructing", "reference", "candidate", "compile", "further checks", "timing")
_STAGE_OF_JOB = {
    "describe_problem": "constructing",
    "reference": "reference",
    "trace": "candidate",
    "interpret": "candidate",
    "execute": "candidate",
    "compile": "compile",
    "perturbed": "further checks",
    "timing": "timing",
}


def later_stage(stage: str, job: str) -> str:
    """The stage of a check in `stage` that runs a job of this kind. Later stages run jobs of earlier ones again."""
    return max(stage, _STAGE_OF_JOB.get(job, stage), key=STAGES.index)
