"""Mutation score of a candidate: how many of its mutants the trials detect."""

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

    One guest runs all mutants on the first trial. Those that pass it run on the others too.
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
        if not fails(reference, run, tensors, number) and _passes(mutant.code, reference, sandbox, settings):
            passed.append(f"line {mutant.line}: {mutant.what}")
    return tried, tuple(passed)


def _passes(mutant: str, reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> bool:
    """True if the mutant passes every trial: each after the first alone, then all of them with one module.

    A light guest detects most mutants; only one that keeps something from call to call needs the whole run.
    """
    specs = [RunSpec(mutant, trial) for trial in range(1, len(reference.trials))]
    try:
        runs, tensors = run_specs(specs, reference, sandbox, settings)
        for number, (spec, run) in enumerate(zip(specs, runs, strict=True)):
            if run.raised or fails(reference, run, tensors, number, spec.trial):
                return False
        whole = reference.with_candidate(mutant)
        trials = run_candidate(whole, sandbox, settings)
        whole.conclude(trials.reply, trials.tensors)
    except (Rejected, InputRejected):
        return False
    return True
