"""Verify a candidate. Each step passes or rejects with a reason and evidence."""

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
from .configurations import rotate_configurations
from .counterexample import counter_examples
from .environment import environment
from .evidence import InputRejected, Rejected, check_kernels
from .further_checks import check_further
from .interpreting import check_interpreted
from .reference_run import Conclusion, Reference
from .rehearsal import flags, rehearse, run_large
from .running import run_candidate
from .score import score
from .task import Call, PlannedTrial, Task, VerifySettings, draw, plan, without
from .validate_task import validate_task


def verify(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings | None = None) -> Outcome[Verified]:
    """Keep the candidate with its verdict, or drop it with the first reason and the smallest failing call."""
    outcome = verify_task(Task.of_candidate(candidate), sandbox, settings or VerifySettings())
    return outcome if isinstance(outcome, Dropped) else Kept(Verified(candidate, outcome))


def verify_task(task: Task, sandbox: Sandbox, settings: VerifySettings) -> Verdict | Dropped:
    """The verdict on `task`, or the reason why there is none."""
    try:
        validate_task(task)
        return judge_task(task, plan(task), sandbox, settings)
    except Rejected as rejected:
        check = partial(check_call, sandbox=sandbox, settings=settings)
        examples = counter_examples(task, rejected, check) if settings.find_counterexamples else ()
        return Dropped(task.id, rejected.reason, rejected.evidence, examples)


def judge_task(task: Task, trials: Sequence[PlannedTrial], sandbox: Sandbox, settings: VerifySettings) -> Verdict:
    """The verdict on `task`, without the trials that the reference or the candidate may reject. Raises: Rejected."""
    validate_task(task, trials)
    while True:
        reference = _run_reference(task, trials, sandbox, settings)
        reference.check_finite()
        impostors = reference.check_impostors()
        try:
            engine, targets, conclusion = _run_and_compile(reference, sandbox, settings)
            break
        except InputRejected as rejected:
            trials = [trial for index, trial in enumerate(reference.trials) if index not in rejected.trials]
    worst_trials = _check_configurations(reference, conclusion.trials, sandbox, settings)
    if task.by_model:
        large_only = rehearse(reference, conclusion.launch_logs, sandbox, settings)
        verified = flags(check_further(reference, sandbox, settings))
        if unverified := [evidence for flag, evidence in large_only.items() if flag not in verified]:
            raise Rejected(Reason.UNVERIFIED_PATH, unverified[0])
        if engine is Engine.TRACE:
            run_large(reference, sandbox, settings)
    if evidence := forbidden(task.triton_code if task.by_model else "", task.init_args):
        raise Rejected(Reason.FORBIDDEN_CODE, evidence)
    mutants, survivors = score(reference, sandbox, settings)
    ran_in = Tier.INTERPRETED if engine is Engine.INTERPRETER else Tier.EXECUTED
    return Verdict(
        tiers=(Tier.COMPILED, ran_in) if targets else (ran_in,),
        engine=engine,
        targets=targets,
        trials=worst_trials,
        launches=len(conclusion.launches[0]),
        launched_kernels=conclusion.kernels,
        deterministic=conclusion.deterministic,
        written=conclusion.written,
        impostors=impostors,
        mutants=mutants,
        survivors=survivors,
        environment=environment(sandbox),
    )


def _run_and_compile(
    reference: Reference, sandbox: Sandbox, settings: VerifySettings
) -> tuple[Engine, tuple[str, ...], Conclusion]:
    """The engine of the trials, the targets that compiled, and the conclusion. Raises: InputRejected, Rejected."""
    run = run_candidate(reference, sandbox, settings)
    conclusion = reference.conclude(run.reply, run.tensors)
    if run.engine is not Engine.INTERPRETER:  # a GPU's autotuner may skip configurations for lack of memory
        conclusion = replace(conclusion, launch_logs=())
    targets = compile_kernels(reference, conclusion, run.engine, sandbox, settings)
    if run.engine is not Engine.INTERPRETER:
        check_interpreted(reference, sandbox, settings)
    return run.engine, targets, conclusion


def _check_configurations(
    reference: Reference, trials: Sequence[Trial], sandbox: Sandbox, settings: VerifySettings
) -> tuple[Trial, ...]:
    """Run the trials with every configuration of a lowered candidate; return the worst result of each trial.

    A model's candidate only runs with its first configurations: Triton skips those that exceed a GPU's memory.
    """
    worst = tuple(trials)
    codes = () if reference.task.by_model else rotate_configurations(reference.task.triton_code)
    for number, code in enumerate(codes, 2):
        try:
            *_, conclusion = _run_and_compile(reference.with_candidate(code), sandbox, settings)
        except Rejected as rejected:
            found = f"with configuration {number}: {rejected.found}"
            raise Rejected(rejected.reason, found, rejected.trial, rejected.element) from rejected
        worst = tuple(max(pair, key=lambda trial: trial.error) for pair in zip(worst, conclusion.trials, strict=True))
    return worst


def check_call(call: Call, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Run the candidate on one call. Raises: Rejected: it fails, or the reference decides nothing on this call."""
    task, trials = call.task, (call.trial,)
    validate_task(task, trials)
    try:
        reference = Reference(task, trials, draw(task, trials), sandbox, settings)
        reference.check_decided()
        run = run_candidate(reference, sandbox, settings)
    except InputRejected as rejected:
        raise Rejected(Reason.ORACLE_FAILED, "the candidate raises, as it may on this call") from rejected
    reference.compare(run.reply, run.tensors)
    reference.check_later(run.tensors)
    check_kernels(task, run.reply, [])


def _run_reference(task: Task, trials: Sequence[PlannedTrial], sandbox: Sandbox, settings: VerifySettings) -> Reference:
    """Run the reference on the trials, with replacements for those on which it raises."""
    while True:
        try:
            return Reference(task, trials, draw(task, trials), sandbox, settings)
        except InputRejected as rejected:
            trials = without(task, trials, rejected.trials)
