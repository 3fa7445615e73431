"""Mutation score of a candidate: how many of its mutants the verifier detects."""

from __future__ import annotations

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.jobs.perturbed import RunSpec
from kernelquarry.transforms.mutate import choose_likely

from .evidence import InputRejected, Rejected
from .interpreting import fails, run_specs
from .reference_run import Reference
from .running import run_candidate
from .task import VerifySettings


def score(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> tuple[int, tuple[str, ...]]:
    """The number of mutants that run, and descriptions of those that pass.

    One guest runs all mutants on the first trial. Those that pass it go through all trials.
    """
    mutants = choose_likely(reference.task, settings.mutants)
    if not mutants:
        return 0, ()
    runs, tensors = run_specs([RunSpec(mutant.code) for mutant in mutants], reference, sandbox, settings)
    tried, passed = 0, []
    for number, (mutant, run) in enumerate(zip(mutants, runs, strict=True)):
        if run.raised and not run.outside:
            continue
        tried += 1
        if fails(reference, run, tensors, number):
            continue
        if _passes(reference.with_candidate(mutant.code), sandbox, settings):
            passed.append(f"line {mutant.line}: {mutant.what}")
    return tried, tuple(passed)


def _passes(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> bool:
    try:
        run = run_candidate(reference, sandbox, settings)
        reference.conclude(run.reply, run.tensors)
    except (Rejected, InputRejected):
        return False
    return True
