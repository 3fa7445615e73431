"""What became of a mutant, and the search for an input that shows it to be wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from stress import Batch, batches

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Pair
from kernelquarry.transforms.mutate.mutants import Mutant
from kernelquarry.transforms.verify import Task, VerifySettings
from kernelquarry.transforms.verify.evidence import InputRejected, Rejected, reply_of
from kernelquarry.transforms.verify.reference_run import Reference
from kernelquarry.transforms.verify.task import describe, plan
from kernelquarry.transforms.verify.verify_candidate import judge_task

_OURS = (Reason.ORACLE_FAILED, Reason.IMPOSTOR_PASSES)  # say nothing about the mutant


class Fate(StrEnum):
    """What the verifier made of a mutant, and rightly or not."""

    KILLED = "killed"
    MISSED = "missed"  # it passed, and a witness shows that it is wrong
    EQUIVALENT = "equivalent"  # it passed, and no witness was found
    STILLBORN = "stillborn"  # it runs on no input at all, which any test would notice
    PASSED = "passed"  # no witness was sought yet


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which the row's kernel passes and the mutant does not."""

    where: str
    reason: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Finding:
    fate: Fate
    reason: str = ""  # code of the reason that it was rejected for
    evidence: str = ""
    witness: Witness | None = None


def try_mutant(pair: Pair, mutant: Mutant, sandbox: Sandbox, settings: VerifySettings) -> Finding:
    """Verify the mutant as the row was verified; look for a witness if it passes.

    Raises:
        Rejected: the row itself is not verified, so its mutants mean nothing.
    """
    finding = judge_mutant(pair, mutant, sandbox, settings)
    return search(pair, mutant, sandbox, settings) if finding.fate is Fate.PASSED else finding


def judge_mutant(pair: Pair, mutant: Mutant, sandbox: Sandbox, settings: VerifySettings) -> Finding:
    """The first half of `try_mutant`: killed, stillborn or passed."""
    task = replace(Task.of_row(pair), triton_code=mutant.code)
    try:
        judge_task(task, plan(task), sandbox, settings)
    except Rejected as rejected:
        if rejected.reason in _OURS:
            raise
        fate = Fate.STILLBORN if _is_stillborn(task, rejected, sandbox, settings) else Fate.KILLED
        return Finding(fate, rejected.reason.value, rejected.evidence)
    return Finding(Fate.PASSED)


def search(pair: Pair, mutant: Mutant, sandbox: Sandbox, settings: VerifySettings) -> Finding:
    """The second half, for one that passed: missed or equivalent. Kernels are interpreted, with a GPU or without."""
    witness = find_witness(Task.of_row(pair), mutant.code, sandbox, settings)
    return Finding(Fate.EQUIVALENT if witness is None else Fate.MISSED, witness=witness)


def _is_stillborn(task: Task, rejected: Rejected, sandbox: Sandbox, settings: VerifySettings) -> bool:
    """It does not load, or its first call raises for another reason than a wrong address."""
    if rejected.reason is Reason.DOES_NOT_LOAD:
        return True
    if rejected.reason is not Reason.DOES_NOT_RUN or "OutOfBounds" in rejected.evidence:
        return False
    try:
        judge_task(task, plan(task)[:1], sandbox, replace(settings, targets=()))
    except Rejected as again:
        return again.reason is Reason.DOES_NOT_RUN
    return False


def find_witness(
    task: Task, mutant: str, sandbox: Sandbox, settings: VerifySettings, tries: Iterable[Batch] | None = None
) -> Witness | None:
    """The first input among `tries` (default: `batches`) on which `task`'s kernel passes and `mutant` does not.

    Where the row's own kernel does not pass, the input lies outside of what the row claims, and is left out.
    """
    for batch in batches(task) if tries is None else tries:
        found = _look(batch, mutant, sandbox, settings)
        if found is not None:
            return found
    return None


def _look(batch: Batch, mutant: str, sandbox: Sandbox, settings: VerifySettings) -> Witness | None:
    """All trials at once; one by one where the row's kernel fails in some of them, or to name the one that tells."""
    several = [batch.alone(index) for index in range(len(batch.trials))] if len(batch.trials) > 1 else []
    try:
        judge = _Judge(batch, sandbox, settings)
        original = judge.rejection(batch.task.triton_code)
    except (Rejected, InputRejected):  # the reference itself
        return _first(several, mutant, sandbox, settings)
    if original is not None:
        return _first(several, mutant, sandbox, settings)
    rejected = judge.rejection(mutant)
    if rejected is None:
        return None
    alone = _first(several, mutant, sandbox, settings)
    where = "; then ".join(batch.describe(index) for index in range(len(batch.trials)))
    return alone or Witness(where, rejected.reason.value, rejected.evidence)


def _first(several: list[Batch], mutant: str, sandbox: Sandbox, settings: VerifySettings) -> Witness | None:
    return next((found for batch in several if (found := _look(batch, mutant, sandbox, settings))), None)


class _Judge:
    """The reference's answers on a batch."""

    def __init__(self, batch: Batch, sandbox: Sandbox, settings: VerifySettings) -> None:
        self._batch, self._sandbox, self._settings = batch, sandbox, settings
        self._tensors = batch.tensors()
        self._reference = Reference(batch.task, batch.trials, self._tensors, sandbox, settings)
        self._reference.check_finite()

    def rejection(self, code: str) -> Rejected | None:
        """Why a kernel's answers are wrong; None if they are right."""
        request = describe(self._batch.task, self._batch.trials)
        request |= {"code": code, "entry_point": CANDIDATE_ENTRY_POINT}
        report = self._sandbox.run(Job(INTERPRET, request, self._tensors, self._settings.limits))
        try:
            self._reference.compare(reply_of(report, Reason.DOES_NOT_RUN), report.tensors)
        except Rejected as rejected:
            return rejected
        return None
