"""Whether a row's checks would notice that its kernel is wrong: they are tried on mutants of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox
from kernelquarry.pipeline.sandbox.observation import MalformedReply, read_observation
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT
from kernelquarry.transforms.mutate import choose_sure

from .evidence import Refused, Rejected, check_kernels
from .reference import Reference
from .running import run_candidate
from .task import PlannedTrial, Task, VerifySettings, describe


def score(
    task: Task,
    trials: Sequence[PlannedTrial],
    tensors: Tensors,
    reference: Reference,
    sandbox: Sandbox,
    settings: VerifySettings,
) -> tuple[int, tuple[str, ...]]:
    """How many mutants were tried, and which of them pass. Those that run on no input are not counted.

    All are called on the first trial, in one guest; what passes there goes through all trials.
    """
    mutants = choose_sure(task, settings.mutants)
    if not mutants:
        return 0, ()
    codes = {"codes": [mutant.code for mutant in mutants], "entry_point": CANDIDATE_ENTRY_POINT}
    wanted = {name: tensor for name, tensor in tensors.items() if name.startswith(("input.0.", "state."))}
    alone = replace(settings.limits, processes=1)
    report = sandbox.run(Job("mutants", describe(task, trials[:1]) | codes, wanted, alone))
    runs = _runs(report, len(mutants))
    tried, passed = 0, []
    for number, (mutant, run) in enumerate(zip(mutants, runs, strict=True)):
        if "raised" in run and not run.get("outside"):
            continue
        tried += 1
        if "raised" in run or _fails_first(reference, run, report.tensors, number):
            continue
        if _passes(replace(task, triton_code=mutant.code), trials, tensors, reference, sandbox, settings):
            passed.append(f"line {mutant.line}: {mutant.what}")
    return tried, tuple(passed)


def _runs(report: Report, number: int) -> list[dict[str, Any]]:
    """What the guest says of each mutant; of nothing, if it has no proper reply: one may run for ever."""
    runs = (report.reply or {}).get("runs")
    if not isinstance(runs, list) or len(runs) != number or not all(isinstance(run, dict) for run in runs):
        return [{}] * number
    return runs


def _fails_first(reference: Reference, run: dict[str, Any], tensors: Tensors, number: int) -> bool:
    try:
        return not reference.is_right(0, read_observation(run, tensors, str(number)))
    except (MalformedReply, ValueError):
        return False  # all trials will tell


def _passes(
    task: Task,
    trials: Sequence[PlannedTrial],
    tensors: Tensors,
    reference: Reference,
    sandbox: Sandbox,
    settings: VerifySettings,
) -> bool:
    try:
        ran = run_candidate(task, trials, tensors, reference.undrawn, sandbox, settings)
        reference.compare(ran.reply, ran.tensors)
        reference.check_later(ran.tensors)
        check_kernels(task, ran.reply, reference.ghost_keeps(ran.reply, ran.tensors))
    except (Rejected, Refused):
        return False
    return True
