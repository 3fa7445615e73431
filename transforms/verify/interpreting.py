"""A trial on the interpreter: for mutants, for candidates that a GPU has run, to see what no GPU shows, and for those
of models, to see what no trial does."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Sandbox, Status
from kernelquarry.pipeline.sandbox.inputs import draw_far_state
from kernelquarry.pipeline.sandbox.jobs.perturbed import PERTURBED
from kernelquarry.pipeline.sandbox.observation import MalformedReply, read_observation
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT, Workload
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

from .compiling import check_refusal
from .evidence import InputRejected, Rejected
from .reference_run import Reference
from .source_constants import SourceConstants
from .task import STATE_SETS, Call, Task, VerifySettings, describe, draw, shapes_of, uneven

_MOST_CONFIGURATIONS = 64
_ELSEWHERE = ("unknown", "plain", "offset", "name", "instance", "subclass", "handled", "weights", "inputs", "keywords")
_CHAINED = ("gpu", "copied", "chained", "weights", "forward")
_TRACKED = (("gradients", "derived", "process"), ("inference", "parameters"))
_NAMED = 2  # calls at sizes that the text names
_FEW = 5  # a size that is not broadcast, nor are its halves, 3 and 2
_SHORT = 4  # the others beside a long one; halves of 3 are 2 and 1, which is broadcast
_UNIT = 64
_LONG_S = 3  # of a processor, for a call with a long size
_UNFINISHED = 2  # calls that took longer: the others would, too


@dataclass(frozen=True, slots=True)
class RunSpec:
    """How a source is called."""

    code: str
    trial: int = 0
    reverse: bool = False  # programs run from the last to the first
    configuration: int = 0  # of each autotuned kernel
    again: bool = False  # the call is made twice more, to see what changes in what is kept
    perturbations: tuple[str, ...] = ()  # what is otherwise than in a trial, see the guest
    seed: int = 0


def run_specs(
    calls: Sequence[RunSpec], reference: Reference, sandbox: Sandbox, settings: VerifySettings
) -> tuple[list[dict[str, Any]], Tensors]:
    """What the guest `mutants` says of each call, nothing of one that took too long or too much, and the tensors.

    Raises: Rejected: the candidate ends its guest.
    """
    request = describe(reference.task, reference.trials)
    request |= {"calls": [asdict(call) for call in calls], "entry_point": CANDIDATE_ENTRY_POINT}
    asked = any("keywords" in call.perturbations for call in calls)
    request["names"] = named_arguments(reference.task.python_code) if asked else []
    tried = {call.trial for call in calls}
    needed = ("state.", *(name for trial in tried for name in (f"input.{trial}.", f"gradient.{trial}")))
    wanted = {name: tensor for name, tensor in reference.tensors.items() if name.startswith(needed)}
    report = sandbox.run(Job(PERTURBED, request, wanted, replace(settings.limits, processes=1)))
    if report.status is Status.CRASHED:
        raise Rejected(Reason.CRASHED, f"called once more, interpreted: {report.error}")
    runs = (report.reply or {}).get("runs")
    if isinstance(runs, list) and len(runs) == len(calls) and all(isinstance(run, dict) for run in runs):
        return runs, report.tensors
    if len(calls) == 1:
        return [{}], {}
    half = len(calls) // 2  # together they took too long
    (runs, tensors), (others, more) = (
        run_specs(part, reference, sandbox, settings) for part in (calls[:half], calls[half:])
    )
    return [*runs, *others], tensors | {_numbered(name, half): value for name, value in more.items()}


def _numbered(name: str, first: int) -> str:
    """What a guest calls a tensor of a call, if it was asked for others before."""
    number, _, rest = name.partition(".")
    return f"{int(number) + first}.{rest}" if number.isdecimal() else name


def fails(reference: Reference, run: dict[str, Any], tensors: Tensors, number: int, trial: int = 0) -> bool:
    """Whether the call gave wrong values, or met an address outside of its tensors."""
    if "raised" in run:
        return bool(run.get("outside"))
    try:
        return not reference.is_right(trial, read_observation(run, tensors, str(number)))
    except (MalformedReply, ValueError):
        return False


def _is_wrong(reference: Reference, run: dict[str, Any], tensors: Tensors, number: int) -> bool:
    """As `fails`, where the candidate may not raise either."""
    return "raised" in run or fails(reference, run, tensors, number)


def check_interpreted(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """For a candidate that is right on a GPU: every address that it reads must lie in its tensors, and it must be right
    where programs run one by one in reverse, too. What the interpreter cannot run says nothing.

    Run are the first trial and that of the oddest sizes, where masks have something to leave out: in a workload of
    powers of two, what has none may read no address that is not its own. A GPU begins with the first programs, so the
    other order is the one that shows a race; and programs that run in step would hide one.

    Raises:
        Rejected: it reads outside of its tensors, or was right by the order in which a GPU ran it.
    """
    code = reference.task.triton_code
    calls = [RunSpec(code, trial, reverse=True) for trial in sorted({0, _oddest(reference)})]
    runs, found = run_specs(calls, reference, sandbox, settings)
    for number, (call, run) in enumerate(zip(calls, runs, strict=True)):
        if fails(reference, run, found, number, call.trial):
            if raised := str(run.get("raised", "")):
                raise Rejected(Reason.DOES_NOT_RUN, raised)
            raise Rejected(Reason.NOT_DETERMINISTIC, "right on the GPU, and wrong where programs run in reverse")


def _oddest(reference: Reference) -> int:
    """The first trial of the workload with the most odd sizes."""
    workload = uneven(reference.task)
    return next((number for number, trial in enumerate(reference.trials) if trial.workload == workload), 0)


def check_further(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> list[str]:
    """For a model's candidate, on the interpreter, what no trial asks of it. Returns the launches of those calls of
    further sizes that were right, with what they were given.

    What a call leaves in what is kept must be as it was, since it could count there; where nothing is as in a trial but
    what the candidate is given, it must be right all the same; so it must be with each configuration of its autotuned
    kernels, as a tuner may take any, and in a call in which one size is long, where a block of a thousand has an end.
    What is not done in time there says nothing.

    Raises:
        Rejected: it keeps count in its kernels, or is wrong with a configuration or for a size that no trial has.
    """
    code = reference.task.triton_code
    seed = reference.task.first_seed >> 8
    ways = (_ELSEWHERE, _CHAINED, *_TRACKED)
    calls = [RunSpec(code, perturbations=each, seed=seed) for each in ways]
    runs, found = run_specs([RunSpec(code, again=True), *calls], reference, sandbox, settings)
    run = runs[0]
    if changed := run.get("changed_again"):
        raise Rejected(Reason.WRONG_CONTRACT, f"a call changes what it keeps for the next: {changed}")
    if any(_is_wrong(reference, runs[number], found, number) for number in range(1, len(runs))):
        names = tuple(dict.fromkeys(name for way in reversed(ways) for name in way))
        apart = [RunSpec(code, perturbations=(one,), seed=seed) for one in names]
        runs, found = run_specs(apart, reference, sandbox, settings)
        which = [one for place, one in enumerate(names) if _is_wrong(reference, runs[place], found, place)]
        raise Rejected(Reason.UNVERIFIED_PATH, f"wrong where it is not as in a trial: {', '.join(which or names)}")
    _check_alike(reference, sandbox, settings)
    _check_weights(reference, sandbox, settings)
    tuned, told = run.get("configurations", 1), list[str]()
    if isinstance(tuned, int) and tuned > 1:
        _check_configurations(reference, min(tuned, _MOST_CONFIGURATIONS), sandbox, settings)
    if reference.task.shape_general:
        own = reference.task.workloads
        # A 1 in place of a size that another one must be like is broadcast, and a kernel need not do that.
        lone = [
            one
            for one, few in zip(set_each(own), set_each(own, _FEW), strict=True)
            if _takes(reference.task, few, sandbox, settings)
        ]
        unfinished = 0
        for alternatives in (*([each] for each in lone), *_drawn_sizes(reference.task)):
            one = _check_first(reference.task, alternatives, sandbox, settings)
            told += _told(one)
            unfinished += one == {}
            if unfinished == _UNFINISHED:
                break
    return told


def _told(run: dict[str, Any] | None) -> list[str]:
    told = (run or {}).get("told")
    return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []


def named_arguments(code: str) -> list[str]:
    """Of the forward of a reference: what its positional arguments are called; none if it takes any number."""
    tree = parse(code)
    models = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == ENTRY_POINT]
    forwards = [node for model in models for node in model.body if isinstance(node, ast.FunctionDef)]
    taken = next((node.args for node in forwards if node.name == "forward"), None)
    return [] if taken is None or taken.vararg else [argument.arg for argument in taken.args[1:]]


def _check_alike(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """One tensor may be given for several inputs, as in attention of a sequence to itself, unless the reference writes
    to its inputs or gives them back. Raises: Rejected."""
    task, trial = reference.task, reference.trials[0]
    specs = [(spec.shape, spec.dtype, spec.low, spec.high) for spec in task.workloads[0].tensors]
    if len(set(specs)) == len(specs) or trial.workload or reference.keeps_inputs:
        return
    tensors = {name: value for name, value in reference.tensors.items() if name.startswith(("state.", "gradient.0"))}
    tensors |= {f"input.0.{i}": reference.tensors[f"input.0.{specs.index(spec)}"] for i, spec in enumerate(specs)}
    if (alike := _decided(Call(task, trial), tensors, sandbox, settings, in_order=False)) is None:
        return
    (run,), found = run_specs([RunSpec(task.triton_code, perturbations=("alike",))], alike, sandbox, settings)
    if run.get("broken") or fails(alike, run, found, 0):
        raise Rejected(
            Reason.UNVERIFIED_PATH, f"wrong where inputs are one tensor: {run.get('raised', 'wrong values')}"
        )


def _check_weights(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """It must be right with what its constructor makes, which no trial has, and with what is far from that, as far as
    the reference can say what is right there. Raises: Rejected."""
    task, trial = reference.task, reference.trials[0]
    if task.training or not (drawn := draw_far_state(task.state, task.first_seed)):
        return
    given = {name: value for name, value in reference.tensors.items() if name.startswith("input.0.")}
    far = {f"state.{key}.{name}": value for key in range(STATE_SETS) for name, value in drawn.items()}
    for told, weights in (("as its constructor makes them", {}), ("far from its constructor's", far)):
        if (other := _decided(Call(task, trial), given | weights, sandbox, settings)) is None:
            continue
        (run,), found = run_specs([RunSpec(task.triton_code)], other, sandbox, settings)
        if run.get("broken") or fails(other, run, found, 0):
            raise Rejected(Reason.WRONG_VALUES, f"with weights {told}: {run.get('raised', 'wrong values')}")


def _drawn_sizes(task: Task) -> list[list[Workload]]:
    """Calls of sizes that follow from the candidate's text, each with what is called if the reference does not take it:
    sizes that it names; of those that nobody knows before, images that are not square or else are, and long sizes,
    longer ones rather than shorter ones, beside few of the others or as many as in a workload; and as many elements as
    it names."""
    draws = random.Random(task.first_seed)
    own = task.workloads
    shares = [draws.random() for _ in range(1 + len(free_sizes(own)))]
    short = [[call] for call in unpredictable(own, shares[1:])]
    if short and (image := non_square(own, short[0][0], upright=shares[0] < 0.5)):
        short[0].insert(0, image)
    few, more = (lengthened(own, 1 - shares[0] ** 4, most) for most in (_SHORT, None))
    numbers = SourceConstants(task.triton_code, task.python_code).sizes
    named, exceeding = at_numbers(own, numbers, _NAMED, _SHORT), exceed_numel(own, numbers, _NAMED)
    long = [[call, more[size]] if size in more else [call] for size, call in few.items()]
    return [*([call] for call in named), *short, *long, *([call] for call in exceeding)]


def _check_configurations(reference: Reference, count: int, sandbox: Sandbox, settings: VerifySettings) -> None:
    calls = [RunSpec(reference.task.triton_code, configuration=number) for number in range(1, count)]
    runs, found = run_specs(calls, reference, sandbox, settings)
    for number, run in enumerate(runs):
        if fails(reference, run, found, number):
            raised = run.get("raised", "wrong values")
            raise Rejected(Reason.WRONG_VALUES, f"with configuration {calls[number].configuration}: {raised}")


def _takes(task: Task, workload: Workload, sandbox: Sandbox, settings: VerifySettings) -> bool:
    """Whether the reference does."""
    call = Call.of(task, workload, task.first_seed, "normal")
    try:
        Reference(call.task, (call.trial,), draw(call.task, (call.trial,)), sandbox, settings)
    except (InputRejected, Rejected):
        return False
    return True


def _check_first(
    task: Task, workloads: Sequence[Workload], sandbox: Sandbox, settings: VerifySettings
) -> dict[str, Any] | None:
    """What the guest says of the first of the calls of which the reference can say something, None if of none; nothing
    if that was not done in time. Raises: Rejected."""
    for workload in workloads:
        call = Call.of(task, workload, task.first_seed, "normal")
        if (reference := _drawn(call, sandbox, settings)) is None:
            continue
        run = _check_long(call, reference, sandbox, settings)
        even = rounded(task.workloads, workload, _UNIT) if "raised" in run else None
        if even is not None:  # some take multiples alone
            call = Call.of(task, even, task.first_seed, "normal")
            if (reference := _drawn(call, sandbox, settings)) is not None:
                run = _check_long(call, reference, sandbox, settings)
        return run
    return None


def _decided(
    call: Call, tensors: Tensors, sandbox: Sandbox, settings: VerifySettings, in_order: bool = True
) -> Reference | None:
    """The reference on that call, None if it cannot say."""
    try:
        reference = Reference(call.task, (call.trial,), tensors, sandbox, settings, in_order)
        reference.check_decided()
    except (InputRejected, Rejected):
        return None
    return reference


def _drawn(call: Call, sandbox: Sandbox, settings: VerifySettings) -> Reference | None:
    return _decided(call, draw(call.task, (call.trial,)), sandbox, settings)


def _check_long(call: Call, reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> dict[str, Any]:
    """What the guest says of the call, nothing if it was not done in time. Raises: Rejected."""
    limits = replace(settings.limits, cpu_s=min(_LONG_S, settings.limits.cpu_s))
    (run,), found = run_specs([RunSpec(call.task.triton_code)], reference, sandbox, replace(settings, limits=limits))
    if fails(reference, run, found, 0):
        where = f"for inputs {shapes_of(call.task.workloads[0])}"
        raise Rejected(Reason.WRONG_VALUES, f"{where}: {run.get('raised', 'wrong values')}")
    check_refusal(call, str(run.get("broken", "")), sandbox, settings)
    return run
