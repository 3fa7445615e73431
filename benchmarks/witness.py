"""Judge a mutant, and search for a witness: an input on which the mutant is wrong and the row's kernel is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from mutate import Mutant
from stress import Batch, batches

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET, TrialsRequest
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.verify import Task, VerifySettings
from kernelquarry.transforms.verify.evidence import InputRejected, Rejected, reply_of
from kernelquarry.transforms.verify.reference_run import Reference
from kernelquarry.transforms.verify.task import plan, trial_calls
from kernelquarry.transforms.verify.verify_candidate import judge_task

_NOT_THE_MUTANT = (Reason.ORACLE_FAILED, Reason.IMPOSTOR_PASSES)  # reasons that concern the reference


class Outcome(StrEnum):
    """Verdict on a mutant, and whether it is right."""

    KILLED = "killed"
    MISSED = "missed"  # passed, and has a witness
    EQUIVALENT = "equivalent"  # passed, and the search found no witness
    STILLBORN = "stillborn"  # runs on no input, which any test would notice, or is outside of the language
    PASSED = "passed"  # passed, before the search for a witness


SURVIVED = (Outcome.MISSED, Outcome.EQUIVALENT)


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which the row's kernel passes and the mutant does not."""

    where: str
    reason: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Finding:
    outcome: Outcome
    reason: str = ""  # code, if it was rejected
    evidence: str = ""
    witness: Witness | None = None


def try_mutant(pair: Pair, mutant: Mutant, sandbox: Sandbox, settings: VerifySettings) -> Finding:
    """Verify the mutant; search for a witness if it passes.

    Raises:
        Rejected: the reference fails, so the mutant has no outcome.
    """
    finding = judge_mutant(pair, mutant, sandbox, settings)
    return search(pair, mutant, sandbox, settings) if finding.outcome is Outcome.PASSED else finding


def judge_mutant(pair: Pair, mutant: Mutant, sandbox: Sandbox, settings: VerifySettings) -> Finding:
    """Verify the mutant: killed, stillborn or passed."""
    task = replace(Task.of_row(pair), triton_code=mutant.code)
    try:
        judge_task(task, plan(task), sandbox, settings)
    except Rejected as rejected:
        if rejected.reason in _NOT_THE_MUTANT:
            raise
        outcome = Outcome.STILLBORN if _is_stillborn(task, rejected, sandbox, settings) else Outcome.KILLED
        return Finding(outcome, rejected.reason.value, rejected.evidence)
    return Finding(Outcome.PASSED)


def search(pair: Pair, mutant: Mutant, sandbox: Sandbox, settings: VerifySettings) -> Finding:
    """Search in the interpreter for a witness of a mutant that passed: missed or equivalent."""
    witness = find_witness(Task.of_row(pair), mutant.code, sandbox, settings)
    return Finding(Outcome.EQUIVALENT if witness is None else Outcome.MISSED, witness=witness)


def _is_stillborn(task: Task, rejected: Rejected, sandbox: Sandbox, settings: VerifySettings) -> bool:
    """True if the mutant does not load, or its first call raises for another reason than a wrong address."""
    if rejected.reason in (Reason.DOES_NOT_LOAD, Reason.OUTSIDE_LANGUAGE):
        return True
    if rejected.reason is not Reason.DOES_NOT_RUN or "OutOfBounds" in rejected.evidence:
        return False
    try:
        judge_task(task, plan(task)[:1], sandbox, replace(settings, target=""))
    except Rejected as again:
        return again.reason is Reason.DOES_NOT_RUN
    return False


def find_witness(
    task: Task, mutant: str, sandbox: Sandbox, settings: VerifySettings, tries: Iterable[Batch] | None = None
) -> Witness | None:
    """The first input among `tries` (default: `batches`) on which `task`'s kernel passes and `mutant` fails.

    Inputs on which the row's kernel fails do not count, as the row makes no claim on them.
    """
    return _first(batches(task) if tries is None else tries, mutant, sandbox, settings)


def _try_batch(batch: Batch, mutant: str, sandbox: Sandbox, settings: VerifySettings) -> Witness | None:
    """Run all trials at once, and one by one if the row's kernel fails in one or to find the failing trial."""
    single = [batch.alone(index) for index in range(len(batch.trials))] if len(batch.trials) > 1 else []
    try:
        reference = Reference(batch.task, batch.trials, batch.tensors(), sandbox, settings)
        reference.check_finite()
        if _rejection(reference, batch.task.triton_code, sandbox, settings):
            return _first(single, mutant, sandbox, settings)
    except (Rejected, InputRejected):  # of the reference
        return _first(single, mutant, sandbox, settings)
    rejected = _rejection(reference, mutant, sandbox, settings)
    if rejected is None:
        return None
    where = "; then ".join(batch.describe(index) for index in range(len(batch.trials)))
    witness = Witness(where, rejected.reason.value, rejected.evidence)
    return _first(single, mutant, sandbox, settings) or witness


def _first(tries: Iterable[Batch], mutant: str, sandbox: Sandbox, settings: VerifySettings) -> Witness | None:
    return next((witness for batch in tries if (witness := _try_batch(batch, mutant, sandbox, settings))), None)


def _rejection(reference: Reference, code: str, sandbox: Sandbox, settings: VerifySettings) -> Rejected | None:
    """Run a kernel on the reference's trials; None if its outputs are right."""
    task = replace(reference.task, triton_code=code)
    request = TrialsRequest(task.candidate_source, trial_calls(task, reference.trials))
    report = sandbox.run(Job(INTERPRET, request, reference.tensors, settings.limits))
    try:
        reference.compare(reply_of(report, Reason.DOES_NOT_RUN), report.tensors)
    except Rejected as rejected:
        return rejected
    return None
