"""Further checks of a model's candidate in the interpreter: perturbations, weights, configurations and sizes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.inputs import draw_far_state
from kernelquarry.pipeline.sandbox.jobs.calls import STATE_SETS
from kernelquarry.pipeline.sandbox.jobs.perturbed import PerturbedRun, RunSpec
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Workload
from kernelquarry.transforms.workloads.resize import (
    at_numbers,
    exceed_numel,
    free_sizes,
    lengthened,
    non_square,
    rounded,
    set_each,
    unpredictable,
)

from .compiling import check_kernel_failure
from .evidence import InputRejected, Rejected
from .interpreting import fails, run_specs
from .reference_run import Reference
from .source_constants import SourceConstants
from .task import Call, Task, VerifySettings, draw, shapes_of

_MAX_CONFIGURATIONS = 64
_PERTURBATIONS = (  # of one call each
    ("unknown", "plain", "offset", "name", "instance", "subclass", "handled", "weights", "inputs", "keywords"),
    ("gpu", "copied", "chained", "weights", "forward"),
    ("gradients", "derived", "process"),
    ("inference", "parameters"),
)
_AT_CONSTANTS = 2  # calls at sizes that the sources name
_FEW = 5  # a size that is not broadcast, nor are its halves, 3 and 2
_SHORT = 4  # for sizes other than a long one; the halves of 3 would be 2 and 1, which is broadcast
_UNIT = 64
_LONG_S = 3  # CPU seconds for a call with a long size
_MAX_UNFINISHED = 2  # calls that exceed the limit, before the others are skipped


def check_further(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> list[str]:
    """Check a model's candidate beyond the trials. Calls that exceed a limit are ignored. Raises: Rejected.

    Returns:
        The launch logs of the calls with further sizes.
    """
    configurations = _check_perturbed(reference, sandbox, settings)
    _check_one_tensor(reference, sandbox, settings)
    _check_weights(reference, sandbox, settings)
    if configurations > 1:
        _check_configurations(reference, min(configurations, _MAX_CONFIGURATIONS), sandbox, settings)
    return _check_sizes(reference, sandbox, settings) if reference.task.shape_general else []


def _check_perturbed(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> int:
    """Repeat the first trial with perturbations; return the number of configurations of the autotuned kernels."""
    code, seed = reference.task.triton_code, reference.task.first_seed >> 8
    calls = [RunSpec(code, perturbations=each, seed=seed) for each in _PERTURBATIONS]
    runs, tensors = run_specs([RunSpec(code, again=True), *calls], reference, sandbox, settings)
    if changed := runs[0].changed_again:
        raise Rejected(Reason.WRONG_CONTRACT, f"a call changes what it keeps for the next: {changed}")
    configurations = runs[0].configurations
    if any(_raises_or_fails(reference, runs[number], tensors, number) for number in range(1, len(runs))):
        names = tuple(dict.fromkeys(name for group in reversed(_PERTURBATIONS) for name in group))
        alone = [RunSpec(code, perturbations=(name,), seed=seed) for name in names]
        runs, tensors = run_specs(alone, reference, sandbox, settings)
        failing = [name for at, name in enumerate(names) if _raises_or_fails(reference, runs[at], tensors, at)]
        raise Rejected(Reason.UNVERIFIED_PATH, f"wrong under the perturbations {', '.join(failing or names)}")
    return configurations


def _raises_or_fails(reference: Reference, run: PerturbedRun, tensors: Tensors, number: int) -> bool:
    return bool(run.raised) or fails(reference, run, tensors, number)


def _check_one_tensor(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Pass one tensor for several inputs, as in self-attention, unless the reference changes or returns its inputs."""
    task, trial = reference.task, reference.trials[0]
    specs = [(spec.shape, spec.dtype, spec.low, spec.high) for spec in task.workloads[0].tensors]
    if len(set(specs)) == len(specs) or trial.workload or reference.keeps_inputs:
        return
    tensors = {name: value for name, value in reference.tensors.items() if name.startswith(("state.", "gradient.0"))}
    tensors |= {f"input.0.{i}": reference.tensors[f"input.0.{specs.index(spec)}"] for i, spec in enumerate(specs)}
    alike = _decided_reference(Call(task, trial), tensors, sandbox, settings, in_order=False)
    if alike and (failure := _failure(alike, sandbox, settings, ("alike",))):
        raise Rejected(Reason.UNVERIFIED_PATH, f"wrong where inputs are one tensor: {failure}")


def _check_weights(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Check with the constructor's weights, which no trial has, and with weights far from them."""
    task, trial = reference.task, reference.trials[0]
    if task.training or not (drawn := draw_far_state(task.state, task.first_seed)):
        return
    inputs = {name: value for name, value in reference.tensors.items() if name.startswith("input.0.")}
    far = {f"state.{key}.{name}": value for key in range(STATE_SETS) for name, value in drawn.items()}
    for kind, weights in (("as its constructor makes them", {}), ("far from its constructor's", far)):
        other = _decided_reference(Call(task, trial), inputs | weights, sandbox, settings)
        if other and (failure := _failure(other, sandbox, settings)):
            raise Rejected(Reason.WRONG_VALUES, f"with weights {kind}: {failure}")


def _failure(
    reference: Reference, sandbox: Sandbox, settings: VerifySettings, perturbations: tuple[str, ...] = ()
) -> str:
    """The exception of one call of the candidate, or "wrong values"; "" if the call is right."""
    specs = [RunSpec(reference.task.triton_code, perturbations=perturbations)]
    (run,), tensors = run_specs(specs, reference, sandbox, settings)
    wrong = run.broken or fails(reference, run, tensors, 0)
    return (run.raised or "wrong values") if wrong else ""


def _check_configurations(reference: Reference, count: int, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Check every configuration of the autotuned kernels but the first, since an autotuner may select any."""
    calls = [RunSpec(reference.task.triton_code, configuration=number) for number in range(1, count)]
    runs, tensors = run_specs(calls, reference, sandbox, settings)
    for number, run in enumerate(runs):
        if fails(reference, run, tensors, number):
            raised = run.raised or "wrong values"
            raise Rejected(Reason.WRONG_VALUES, f"with configuration {calls[number].configuration}: {raised}")


def _check_sizes(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> list[str]:
    """Check calls with further sizes, and return their launch logs."""
    task, own = reference.task, reference.task.workloads
    # A size of 1 in place of one that must equal another is broadcast, which a kernel need not support.
    ones = [
        one
        for one, few in zip(set_each(own), set_each(own, _FEW), strict=True)
        if _accepts(task, few, sandbox, settings)
    ]
    logs, unfinished = list[str](), 0
    for alternatives in (*([one] for one in ones), *drawn_sizes(task)):
        run = _check_first_decided(task, alternatives, sandbox, settings)
        logs += run.launch_log if run else ()
        unfinished += run == PerturbedRun()
        if unfinished == _MAX_UNFINISHED:
            break
    return logs


def drawn_sizes(task: Task) -> list[list[Workload]]:
    """Calls whose sizes follow from the candidate's source, each with alternatives in case the reference rejects it.

    In order: sizes that are constants in the sources; unpredictable sizes, where images change between square and not
    square; one long size, with the other sizes short or as in a workload; and more elements than a constant.
    """
    draws = random.Random(task.first_seed)
    own = task.workloads
    shares = [draws.random() for _ in range(1 + len(free_sizes(own)))]
    short = [[call] for call in unpredictable(own, shares[1:])]
    if short and (image := non_square(own, short[0][0], upright=shares[0] < 0.5)):
        short[0].insert(0, image)
    few, more = (lengthened(own, 1 - shares[0] ** 4, most) for most in (_SHORT, None))  # rather long than short
    constants = SourceConstants(task.triton_code, task.python_code).sizes
    equal = at_numbers(own, constants, _AT_CONSTANTS, _SHORT)
    exceeding = exceed_numel(own, constants, _AT_CONSTANTS)
    long = [[call, more[size]] if size in more else [call] for size, call in few.items()]
    return [*([call] for call in equal), *short, *long, *([call] for call in exceeding)]


def _accepts(task: Task, workload: Workload, sandbox: Sandbox, settings: VerifySettings) -> bool:
    """True if the reference runs on the workload."""
    call = Call.of(task, workload, task.first_seed, "normal")
    try:
        Reference(call.task, (call.trial,), draw(call.task, (call.trial,)), sandbox, settings)
    except (InputRejected, Rejected):
        return False
    return True


def _check_first_decided(
    task: Task, workloads: Sequence[Workload], sandbox: Sandbox, settings: VerifySettings
) -> PerturbedRun | None:
    """Check the first call on which the reference is decided; see `_check_size`.

    If the candidate raises there, check the call with sizes rounded up to multiples of 64, which some kernels need.
    """
    for workload in workloads:
        run = _check_size(task, workload, sandbox, settings)
        even = rounded(task.workloads, workload, _UNIT) if run and run.raised else None
        if even is not None and (even_run := _check_size(task, even, sandbox, settings)) is not None:
            run = even_run
        if run is not None:
            return run
    return None


def _check_size(task: Task, workload: Workload, sandbox: Sandbox, settings: VerifySettings) -> PerturbedRun | None:
    """Check a call: the run, an empty one if it exceeded a limit; None if the reference is not decided."""
    call = Call.of(task, workload, task.first_seed, "normal")
    reference = _decided_reference(call, draw(call.task, (call.trial,)), sandbox, settings)
    if reference is None:
        return None
    limits = replace(settings.limits, cpu_s=min(_LONG_S, settings.limits.cpu_s))
    (run,), tensors = run_specs([RunSpec(task.triton_code)], reference, sandbox, replace(settings, limits=limits))
    if fails(reference, run, tensors, 0):
        where = f"for inputs {shapes_of(workload)}"
        raise Rejected(Reason.WRONG_VALUES, f"{where}: {run.raised or 'wrong values'}")
    check_kernel_failure(call, run.broken, sandbox, settings)
    return run


def _decided_reference(
    call: Call, tensors: Tensors, sandbox: Sandbox, settings: VerifySettings, in_order: bool = True
) -> Reference | None:
    """Run the reference on a call; None if it fails or decides nothing."""
    try:
        reference = Reference(call.task, (call.trial,), tensors, sandbox, settings, in_order)
        reference.check_decided()
    except (InputRejected, Rejected):
        return None
    return reference
