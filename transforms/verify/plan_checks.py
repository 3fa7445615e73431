"""Check a model's candidate against its plan, and narrow its text to what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kernelquarry.filters.language.parsed_source import parsed
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.reasons import Reason

from .evidence import InputRejected, Rejected
from .further_checks import FurtherRuns
from .larger_calls import trial_ways
from .paths import way
from .plan import PlannedCall, Planner, Raised, TooLong, Unsupported
from .plan.agreement import disagreement, planned_calls
from .plan.claims import Narrowed, Unfaithful, claim
from .reference_run import Reference
from .running import run_candidate


def check_plan(reference: Reference, reply: TrialsReply, further: FurtherRuns) -> Planner:
    """Compare what the candidate's Python did with its plans, and return their planner.

    Raises:
        Rejected: it did something else.
    """
    task = reference.task
    try:
        planner = Planner(parsed(task.triton_code), reply.snapshot)
        if found := disagreement(planner, task, reference.trials, reply):
            raise Rejected(Reason.PLAN_DIFFERS, found)
        for call, log in further.planned_calls():
            try:
                planned = planner.plan(call).launch_log()
            except TooLong:
                continue
            if log and planned != log:
                pair = next((pair for pair in zip(planned, log, strict=False) if pair[0] != pair[1]), (planned, log))
                raise Rejected(Reason.PLAN_DIFFERS, f"the plan launches {pair[0]}, Python {pair[1]}")
    except Unsupported as error:
        raise Rejected(Reason.OUTSIDE_LANGUAGE, f"no plan: the host code needs {error}") from error
    except (Raised, MalformedReply) as error:
        raise Rejected(Reason.PLAN_DIFFERS, f"no plan: {error}") from error
    return planner


def narrow_claim(
    planner: Planner,
    reference: Reference,
    reply: TrialsReply,
    further: FurtherRuns,
) -> tuple[Narrowed, Planner]:
    """The candidate's text, narrowed to what verified calls took, and verified on the trials once more.

    A way that only further calls went was tried in a corner, so it counts as untried. A text that cannot be narrowed
    stays as it is.

    Returns: the text, and a planner that has planned the verified calls and no others.

    Raises:
        Rejected: the text still goes a way that only further calls went.
    """
    task, ways, known = reference.task, trial_ways(reference, planner), planner.plans
    calls = [*planned_calls(task, reference.trials), *(call for call, _ in further.planned_calls())]
    planned = [call for call in calls if call in known and way(known[call]) in ways]
    if planned != calls:  # the planner has seen others, or a part of them
        planner = Planner(parsed(task.triton_code), reply.snapshot)
    narrowed = _narrowed(planner, planned, reference, reply)
    others = known.keys() - set(planned)
    again = Planner(parsed(narrowed.code), reply.snapshot) if others else planner
    for call in others:
        with suppress(Raised, TooLong):
            if way(again.plan(call)) not in ways:
                shapes = [list(each.shape) for each in call.inputs]
                raise Rejected(Reason.UNVERIFIED_PATH, f"goes another way for inputs {shapes} than in any trial")
    return narrowed, planner


def _narrowed(planner: Planner, calls: Sequence[PlannedCall], reference: Reference, reply: TrialsReply) -> Narrowed:
    task = reference.task
    try:
        for spare in (False, True):
            narrowed = claim(task.triton_code, task.init_args, task.python_code, reply.snapshot, calls, planner, spare)
            failure = narrowed.code != task.triton_code and _failure(reference.with_candidate(narrowed.code))
            if not failure:
                return narrowed
    except Unfaithful as error:
        failure = str(error)
    return Narrowed(task.triton_code, (f"not narrowed: {failure}",))


def _failure(narrowed: Reference) -> str:
    """How a narrowed text fails on the trials; "" if it does not."""
    try:
        run = run_candidate(narrowed)
        narrowed.conclude(run.reply, run.tensors)
    except (InputRejected, Rejected) as error:
        return f"the narrowed text fails: {error}"
    return ""
