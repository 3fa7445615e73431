"""Whether a row's checks would notice that its kernel is wrong: they are tried on mutants of it."""

from __future__ import annotations

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.transforms.mutate import choose_likely

from .evidence import InputRejected, Rejected
from .interpreting import RunSpec, fails, run_specs
from .reference_run import Reference
from .running import run_candidate
from .task import VerifySettings


def score(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> tuple[int, tuple[str, ...]]:
    """How many mutants were tried, and which of them pass. Those that run on no input are not counted.

    All are called on the first trial, in one guest; what passes there goes through all trials.
    """
    mutants = choose_likely(reference.task, settings.mutants)
    if not mutants:
        return 0, ()
    runs, found = run_specs([RunSpec(mutant.code) for mutant in mutants], reference, sandbox, settings)
    tried, passed = 0, []
    for number, (mutant, run) in enumerate(zip(mutants, runs, strict=True)):
        if "raised" in run and not run.get("outside"):
            continue
        tried += 1
        if fails(reference, run, found, number):
            continue
        if _passes(reference.with_candidate(mutant.code), sandbox, settings):
            passed.append(f"line {mutant.line}: {mutant.what}")
    return tried, tuple(passed)


def _passes(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> bool:
    try:
        ran = run_candidate(reference, sandbox, settings)
        reference.conclude(ran.reply, ran.tensors)
    except (Rejected, InputRejected):
        return False
    return True
