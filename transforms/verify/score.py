"""Whether a row's checks would notice that its kernel is wrong: they are tried on mutants of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.transforms.mutate import choose_sure

from .evidence import Refused, Rejected, check_kernels
from .interpreting import call_once, fails
from .reference import Reference
from .running import run_candidate
from .task import PlannedTrial, Task, VerifySettings


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
    codes = [mutant.code for mutant in mutants]
    runs, found = call_once(codes, task, trials, tensors, sandbox, settings)
    tried, passed = 0, []
    for number, (mutant, run) in enumerate(zip(mutants, runs, strict=True)):
        if "raised" in run and not run.get("outside"):
            continue
        tried += 1
        if fails(reference, run, found, number):
            continue
        if _passes(replace(task, triton_code=mutant.code), trials, tensors, reference, sandbox, settings):
            passed.append(f"line {mutant.line}: {mutant.what}")
    return tried, tuple(passed)


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
