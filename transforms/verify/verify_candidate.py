"""From a candidate to a verdict. Each step either goes on or rejects with a reason and what shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kernelquarry.filters.lint import forbidden
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Engine, Tier, Trial, Verdict, Verified

from .compiling import compile_kernels
from .configurations import others
from .counterexample import counter_examples
from .environment import environment
from .evidence import InputRejected, Rejected, check_kernels
from .interpreting import check_further, check_interpreted
from .reference_run import Conclusion, Reference
from .rehearsal import flags, rehearse, run_large
from .running import run_candidate
from .score import score
from .task import Call, PlannedTrial, Task, VerifySettings, draw, plan, without
from .validate_task import validate_task


def verify(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings | None = None) -> Outcome[Verified]:
    """Kept with its verdict, or dropped with the first reason found, and the smallest call that shows it."""
    found = verify_task(Task.of_candidate(candidate), sandbox, settings or VerifySettings())
    return found if isinstance(found, Dropped) else Kept(Verified(candidate, found))


def verify_task(task: Task, sandbox: Sandbox, settings: VerifySettings) -> Verdict | Dropped:
    """The verdict on `task`, or why there is none."""
    try:
        validate_task(task)
        return judge_task(task, plan(task), sandbox, settings)
    except Rejected as rejected:
        check = partial(check_call, sandbox=sandbox, settings=settings)
        examples = counter_examples(task, rejected, check) if settings.find_counterexamples else ()
        return Dropped(task.id, rejected.reason, rejected.evidence, examples)


def judge_task(task: Task, trials: Sequence[PlannedTrial], sandbox: Sandbox, settings: VerifySettings) -> Verdict:
    """The verdict on `task` after `trials`; those whose reference overflows are left out of it.

    Raises:
        Rejected: it is not verified, and why.
    """
    validate_task(task, trials)
    while True:
        reference = _referred(task, trials, sandbox, settings)
        reference.check_finite()
        tried = reference.check_impostors()
        try:
            engine, targets, shown = _try_out(reference, sandbox, settings)
            break
        except InputRejected as refused:
            trials = [trial for index, trial in enumerate(reference.trials) if index not in refused.trials]
    shown = replace(shown, trials=_try_configurations(reference, shown.trials, sandbox, settings))
    if task.by_model:
        only_large = rehearse(reference, shown.told, sandbox, settings)
        seen = flags(check_further(reference, sandbox, settings))
        if untried := [found for flag, found in only_large.items() if flag not in seen]:
            raise Rejected(Reason.UNVERIFIED_PATH, untried[0])
        if engine is Engine.TRACE:
            run_large(reference, sandbox, settings)
    if found := forbidden(task.triton_code if task.by_model else "", task.init_args):
        raise Rejected(Reason.FORBIDDEN_CODE, found)
    mutants, survivors = score(reference, sandbox, settings)
    ran_in = Tier.INTERPRETED if engine is Engine.INTERPRETER else Tier.EXECUTED
    return Verdict(
        tiers=(Tier.COMPILED, ran_in) if targets else (ran_in,),
        engine=engine,
        targets=targets,
        trials=shown.trials,
        launches=len(shown.launches[0]),
        launched_kernels=shown.kernels,
        deterministic=shown.deterministic,
        written=shown.written,
        impostors=tried,
        mutants=mutants,
        survivors=survivors,
        environment=environment(sandbox),
    )


def _try_out(
    reference: Reference, sandbox: Sandbox, settings: VerifySettings
) -> tuple[Engine, tuple[str, ...], Conclusion]:
    """What ran the candidate, what it compiled for, and what its trials have shown. Raises: InputRejected, Rejected."""
    ran = run_candidate(reference, sandbox, settings)
    shown = reference.conclude(ran.reply, ran.tensors)
    if ran.engine is not Engine.INTERPRETER:  # its GPU may have had no room for what a tuner takes elsewhere
        shown = replace(shown, told=[])
    targets = compile_kernels(reference, shown, ran.engine, sandbox, settings)
    if ran.engine is not Engine.INTERPRETER:
        check_interpreted(reference, sandbox, settings)
    return ran.engine, targets, shown


def _try_configurations(
    reference: Reference, trials: Sequence[Trial], sandbox: Sandbox, settings: VerifySettings
) -> tuple[Trial, ...]:
    """The trials, each as it is with the worst of the configurations of an autotuned candidate that was lowered.

    A model's candidate is verified with its first ones: Triton leaves out those that a GPU has no room for.

    Raises:
        Rejected: it is wrong with one of them.
    """
    worst = tuple(trials)
    codes = () if reference.task.by_model else others(reference.task.triton_code)
    for number, code in enumerate(codes, 2):
        try:
            *_, shown = _try_out(reference.with_candidate(code), sandbox, settings)
        except Rejected as rejected:
            found = f"with configuration {number}: {rejected.found}"
            raise Rejected(rejected.reason, found, rejected.trial, rejected.element) from rejected
        worst = tuple(max(pair, key=lambda trial: trial.error) for pair in zip(worst, shown.trials, strict=True))
    return worst


def check_call(call: Call, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Run the candidate on one call alone, and compare.

    Raises:
        Rejected: it fails there, or nothing can be said about it.
    """
    task, trials = call.task, (call.trial,)
    validate_task(task, trials)
    try:
        reference = Reference(task, trials, draw(task, trials), sandbox, settings)
        reference.check_decided()
        ran = run_candidate(reference, sandbox, settings)
    except InputRejected as refused:
        raise Rejected(Reason.ORACLE_FAILED, "raises, as it may") from refused
    reference.compare(ran.reply, ran.tensors)
    reference.check_later(ran.tensors)
    check_kernels(task, ran.reply, [])


def _referred(task: Task, trials: Sequence[PlannedTrial], sandbox: Sandbox, settings: VerifySettings) -> Reference:
    """What the reference makes of the trials, others in place of those it raises on."""
    while True:
        try:
            return Reference(task, trials, draw(task, trials), sandbox, settings)
        except InputRejected as refused:
            trials = without(task, trials, refused.trials)
