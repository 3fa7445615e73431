"""Verify a candidate: run the checks of the table on it. The first that rejects gives the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import Candidate, Verdict, Verified
from kernelquarry.transforms.workloads.resize import count_elements

from .checks import CHECKS, Proven, Verification
from .counterexample import counter_examples
from .evidence import Rejected
from .running import check_call
from .task import Call, PlannedTrial, Task, VerifySettings, plan
from .validate_task import validate_task


def verify(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings | None = None) -> Outcome[Verified]:
    """Keep the candidate with its verdict, or drop it with the first reason and the smallest failing call."""
    outcome = verify_task(Task.of_candidate(candidate), sandbox, settings or VerifySettings())
    if isinstance(outcome, Dropped):
        return outcome
    found = replace(candidate, triton_code=outcome.code)
    general = _is_constructor_general(found, sandbox, settings or VerifySettings())
    return Kept(Verified(found, outcome.verdict, constructor_general=general))


def _is_constructor_general(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings) -> bool:
    """True if the candidate is right on the smallest call for each of its other arguments of the constructor."""
    task = Task.of_candidate(candidate)
    for other in candidate.constructions:
        workload = min(other.workloads if candidate.shape_general else other.workloads[:1], key=count_elements)
        constructed = replace(task, init_args=other.init_args, state=other.state)
        try:
            check_call(Call.of(constructed, workload, task.first_seed, "normal"), sandbox, settings)
        except Rejected:
            return False
    return bool(candidate.constructions)


def verify_task(task: Task, sandbox: Sandbox, settings: VerifySettings) -> Proven | Dropped:
    """The verdict on `task`, or the reason why there is none."""
    try:
        validate_task(task)
        return _verified(task, plan(task), sandbox, settings).proven()
    except Rejected as rejected:
        check = partial(check_call, sandbox=sandbox, settings=settings)
        examples = counter_examples(task, rejected, check) if settings.find_counterexamples else ()
        return Dropped(task.id, rejected.reason, rejected.evidence, examples)


def judge_task(task: Task, trials: Sequence[PlannedTrial], sandbox: Sandbox, settings: VerifySettings) -> Verdict:
    """The verdict on `task`, without the trials that the reference or the candidate may reject. Raises: Rejected."""
    return _verified(task, trials, sandbox, settings).verdict()


def _verified(task: Task, trials: Sequence[PlannedTrial], sandbox: Sandbox, settings: VerifySettings) -> Verification:
    """A verification that ran all checks. Raises: Rejected."""
    verification = Verification(task, trials, sandbox, settings)
    for check in CHECKS:
        if check.applies.to(verification):
            check.run(verification)
    return verification
