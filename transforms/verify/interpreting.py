"""Run single calls of a candidate in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.pipeline.sandbox import Job, Status
from kernelquarry.pipeline.sandbox.jobs.perturbed import PERTURBED, PerturbedRequest, PerturbedRun, RunSpec
from kernelquarry.pipeline.sandbox.observation import MalformedReply, read_observation
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason

from .evidence import Rejected
from .reference_run import Reference
from .task import trial_calls, uneven


def run_specs(
    calls: Sequence[RunSpec],
    reference: Reference,
    budget_s: float = 0.0,
    writable: tuple[str, ...] | None = None,
) -> tuple[Sequence[PerturbedRun], Tensors]:
    """Run the calls in a guest. Raises: Rejected: the candidate crashes its guest.

    Args:
        budget_s: CPU time of all calls that have a limit.
        writable: inputs and state that kernels may store to. Unless None, a load of undefined memory and a store to
            other memory that outlives the call raise OutOfBounds.

    Returns:
        Each run, an empty one if the call exceeded a limit; and the tensors of all runs.
    """
    task = reference.task
    request = PerturbedRequest(
        module=task.candidate_source,
        trials=trial_calls(task, reference.trials),
        runs=tuple(calls),
        budget_s=budget_s,
        writable=writable,
    )
    trials = {call.trial for call in calls}
    prefixes = ("state.", *(name for trial in trials for name in (f"input.{trial}.", f"gradient.{trial}")))
    needed = {name: tensor for name, tensor in reference.tensors.items() if name.startswith(prefixes)}
    limits = replace(reference.settings.limits, processes=1)
    report = reference.sandbox.run(Job(PERTURBED, request, needed, limits))
    if report.status is Status.CRASHED:
        raise Rejected(Reason.CRASHED, f"called once more, interpreted: {report.error}")
    if report.reply is not None and len(report.reply.runs) == len(calls):
        return report.reply.runs, report.tensors
    if len(calls) == 1:
        return [PerturbedRun()], {}
    half = len(calls) // 2  # all calls together exceeded a limit
    (runs, tensors), (more_runs, more_tensors) = (
        run_specs(part, reference, budget_s, writable) for part in (calls[:half], calls[half:])
    )
    return [*runs, *more_runs], tensors | {_renumber(name, half): value for name, value in more_tensors.items()}


def _renumber(name: str, first: int) -> str:
    """Name of a call's tensor after `first` is added to the number of the call."""
    number, _, rest = name.partition(".")
    return f"{int(number) + first}.{rest}" if number.isdecimal() else name


def fails(reference: Reference, run: PerturbedRun, tensors: Tensors, number: int, trial: int = 0) -> bool:
    """True if the call gave wrong values, or accessed an address outside of its tensors."""
    if run.raised:
        return run.outside
    try:
        return not reference.is_right(trial, read_observation(run.call, tensors, str(number)))
    except (MalformedReply, ValueError):
        return False


def check_interpreted(reference: Reference) -> None:
    """Check in the interpreter a candidate that is right on a GPU: addresses, and programs in reverse order.

    The first trial runs, and that with the most sizes that are not powers of two, where masks exclude elements: an
    unmasked kernel only reads outside of its tensors there. A GPU starts with the first programs, so the reverse order
    shows a race; programs in lockstep would hide it. A candidate that the interpreter cannot run passes.
    """
    code, oddest = reference.task.triton_code, uneven(reference.task)
    odd_trial = next((number for number, trial in enumerate(reference.trials) if trial.workload == oddest), 0)
    calls = [RunSpec(code, trial, perturbations=("reverse",)) for trial in sorted({0, odd_trial})]
    runs, tensors = run_specs(calls, reference)
    for number, (call, run) in enumerate(zip(calls, runs, strict=True)):
        if fails(reference, run, tensors, number, call.trial):
            if run.raised:
                raise Rejected(Reason.DOES_NOT_RUN, run.raised)
            raise Rejected(Reason.NOT_DETERMINISTIC, "right on the GPU, and wrong where programs run in reverse")
