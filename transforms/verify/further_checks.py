"""Further checks of a model's candidate in the interpreter: one call in other environments, and `further_calls`.

One guest runs the reference on all calls, and one guest the candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.jobs.calls import CONSTRUCTOR
from kernelquarry.pipeline.sandbox.jobs.perturbed import PerturbedRun, RunSpec
from kernelquarry.pipeline.sandbox.judge import CANCELS
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Workload
from kernelquarry.transforms.workloads.resize import count_elements, rounded

from .compiling import check_kernel_failure
from .evidence import Rejected
from .further_calls import FurtherCall, further_calls
from .interpreting import fails, run_specs
from .plan import PlannedCall
from .reference_run import Reference
from .task import FAR, FLIPPED, Call, PlannedTrial, Task, VerifySettings, draw, shapes_of

_FIRST_SEED = 128  # of the calls at other sizes, among the 256 seeds of a task
_MAX_CONFIGURATIONS = 64
_PERTURBATIONS = (("gpu", "zero_masked", "offset"), ("random",))  # of one call each
_UNIT, _BLOCK = 64, 16  # a multiple of most blocks; the smallest block of most
_MOST_TUNED = 1 << 17  # elements of a call that each configuration runs
_REFERENCE_S = _CALL_S = 1.0  # CPU seconds of one call at other sizes: of the reference once, of the candidate
_ALIKE_CANCEL = 2.0**-5  # of the usual scale: what is left of inputs that are equal, such as a loss of pairs that match
_BUDGET_S = 4.0  # CPU seconds of the candidate for all of them
_SETS = {
    CONSTRUCTOR: "as its constructor makes them",
    FAR: "far from its constructor's",
    FLIPPED: "far from its constructor's, with other signs",
}


@dataclass(frozen=True, slots=True)
class _Batch:
    """Calls with the reference's outputs and the candidate's runs; runs of calls that decide nothing are None."""

    calls: Sequence[FurtherCall]
    reference: Reference
    extra: Sequence[PerturbedRun]  # runs of the first call in a perturbed environment
    runs: Sequence[PerturbedRun | None]
    tensors: Tensors
    numbers: Sequence[int]  # of the calls' runs among all runs

    def fails(self, index: int) -> bool:
        run = self.runs[index]
        return run is not None and fails(self.reference, run, self.tensors, self.numbers[index], index)


class FurtherRuns:
    """The runs of a model's candidate beyond the trials, and the checks of them. Calls that exceed a limit are ignored.

    `launch_logs` are the launches of the calls at other sizes, once these are checked.
    """

    def __init__(self, task: Task, batch: _Batch) -> None:
        self._task, self._batch = task, batch
        self.launch_logs: list[str] = []
        self._batches = [batch]

    @classmethod
    def of(cls, reference: Reference) -> FurtherRuns:
        """Make the runs. Raises: Rejected: the candidate crashes its guest."""
        task = reference.task
        code, seed = task.triton_code, task.first_seed >> 8
        perturbed = [RunSpec(code, perturbations=each, seed=seed) for each in _PERTURBATIONS]
        batch = _run(task, further_calls(task), [RunSpec(code), *perturbed], reference.sandbox, reference.settings)
        return cls(task, batch)

    def check_environments(self) -> None:
        """Check the memory of the first call, and the call with other memory, programs and GPU. Raises: Rejected."""
        _check_environments(self._batch)

    def check_calls(self) -> None:
        """Check the calls, and then others in place of those that decided nothing. Raises: Rejected."""
        _check_calls(self._batch)
        self.launch_logs += _logs(self._batch)
        if more := _alternatives(self._task.workloads, self._batch):
            own = self._batch.reference
            again = _run(self._task, more, [], own.sandbox, own.settings)
            _check_calls(again)
            self.launch_logs += _logs(again)
            self._batches.append(again)

    def planned_calls(self) -> list[tuple[PlannedCall, tuple[str, ...]]]:
        """The calls that the candidate ran, each with the log of its launches; () where inputs are one tensor."""
        found = []
        for batch in self._batches:
            for call, run in zip(batch.calls, batch.runs, strict=True):
                if run is not None and run.call is not None:
                    workload = call.workload
                    planned = PlannedCall(workload.args, workload.kwargs, workload.tensors, alone=True)
                    found.append((planned, () if call.one_tensor else run.launch_log))
        return found

    def check_configurations(self) -> None:
        """Check every configuration of the autotuned kernels on a large call. Raises: Rejected."""
        if self._batch.extra[0].configurations > 1:
            _check_configurations(self._batch)


def _run(
    task: Task, calls: Sequence[FurtherCall], extra: Sequence[RunSpec], sandbox: Sandbox, settings: VerifySettings
) -> _Batch:
    """Run the reference on the calls, then the candidate on those that are decided."""
    further = replace(task, workloads=tuple(call.workload for call in calls), shape_general=False)
    trials = [
        PlannedTrial(at, task.first_seed + (_FIRST_SEED + at if call.resized else 0), call.distribution, call.weights)
        for at, call in enumerate(calls)
    ]
    tensors = draw(further, trials)
    for index, call in enumerate(calls):
        if call.one_tensor:
            tensors |= _one_tensor(call.workload, index, tensors)
    # The first call is that of the first trial, but among alternatives.
    is_usual = calls[0].workload == task.workloads[0]
    shares = enumerate(_ALIKE_CANCEL if call.one_tensor else CANCELS for call in calls)
    usual = {index: (0, share) for index, share in shares if index and is_usual}
    reference = Reference(further, trials, tensors, sandbox, settings, _REFERENCE_S, usual)
    known = {call.workload for index, call in enumerate(calls) if reference.decides(index)}
    chosen = [
        index
        for index, call in enumerate(calls)
        if reference.decides(index) and (call.requires is None or call.requires in known)
    ]
    specs = [*extra, *(_spec(task, calls[index], index) for index in chosen)]
    runs, tensors = run_specs(specs, reference, _BUDGET_S, reference.writes()) if specs else ([], {})
    own = dict(zip(chosen, range(len(extra), len(specs)), strict=True))
    return _Batch(
        calls=calls,
        reference=reference,
        extra=runs[: len(extra)],
        runs=[runs[own[index]] if index in own else None for index in range(len(calls))],
        tensors=tensors,
        numbers=[own.get(index, -1) for index in range(len(calls))],
    )


def _spec(task: Task, call: FurtherCall, index: int, configuration: int = 0) -> RunSpec:
    return RunSpec(
        code=task.triton_code,
        trial=index,
        configuration=configuration,
        perturbations=call.perturbations,
        seed=task.first_seed >> 8,
        limit_s=_CALL_S if call.resized else 0.0,
    )


def _one_tensor(workload: Workload, index: int, tensors: Tensors) -> Tensors:
    """The inputs, each with the values of the first input of its shape."""
    specs = [(spec.shape, spec.dtype, spec.low, spec.high) for spec in workload.tensors]
    return {f"input.{index}.{i}": tensors[f"input.{index}.{specs.index(spec)}"] for i, spec in enumerate(specs)}


def _check_environments(batch: _Batch) -> None:
    plain, *perturbed = batch.extra
    if plain.outside:
        raise Rejected(Reason.WRONG_CONTRACT, plain.broken or plain.raised)
    for number, (names, run) in enumerate(zip(_PERTURBATIONS, perturbed, strict=True), 1):
        if run.raised or fails(batch.reference, run, batch.tensors, number):
            raise Rejected(Reason.UNVERIFIED_PATH, f"wrong under the perturbations {', '.join(names)}")


def _check_calls(batch: _Batch) -> None:
    """Raises: Rejected: the candidate is wrong on a call, or its kernel raises though it compiles."""
    for index, (call, run) in enumerate(zip(batch.calls, batch.runs, strict=True)):
        if run is None:
            continue
        raised = run.broken and not call.resized
        found = (run.outside and run.broken) or run.raised or "wrong values"
        if call.one_tensor and not batch.reference.keeps_inputs(index) and (raised or batch.fails(index)):
            raise Rejected(Reason.UNVERIFIED_PATH, f"wrong where inputs are one tensor: {found}")
        if call.weights and (raised or batch.fails(index)):
            raise Rejected(Reason.WRONG_VALUES, f"with weights {_SETS[call.weights]}: {found}")
        if not call.resized:
            continue
        alone = _alone(batch, index)
        if batch.fails(index):
            where = f"for inputs {shapes_of(call.workload)}, {call.distribution}"
            raise Rejected(Reason.WRONG_VALUES, f"{where}: {found}", call=alone)
        check_kernel_failure(alone, run.broken, batch.reference.sandbox, batch.reference.settings)


def _alone(batch: _Batch, index: int) -> Call:
    trial = batch.reference.trials[index]
    return Call.of(batch.reference.task, batch.calls[index].workload, trial.seed, trial.distribution)


def _check_configurations(batch: _Batch) -> None:
    """Check every configuration of the autotuned kernels on the largest call that the candidate runs in time.

    An autotuner may select any of them. A GPU's skips configurations that do not fit. Of the call, as many sizes as
    possible are multiples of no block. Another one has as many multiples of most blocks as possible.
    """
    count = min(batch.extra[0].configurations, _MAX_CONFIGURATIONS)
    pairs = enumerate(zip(batch.calls, batch.runs, strict=True))
    ran = [index for index, (call, run) in pairs if run is not None and run.call and not call.weights]
    moderate = [index for index in ran if count_elements(batch.calls[index].workload) <= _MOST_TUNED] or ran
    workloads = [call.workload for call in batch.calls]
    indices = [
        max(moderate, key=lambda each: (count_of(workloads[each]), count_elements(workloads[each]), -each))
        for count_of in (_uneven, _even)
    ]
    task, calls = batch.reference.task, batch.calls
    specs = [_spec(task, calls[index], index, number) for index in dict.fromkeys(indices) for number in range(1, count)]
    runs, tensors = run_specs(specs, batch.reference, _BUDGET_S, batch.reference.writes())
    for number, run in enumerate(runs):
        if fails(batch.reference, run, tensors, number, specs[number].trial):
            raised = run.raised or "wrong values"
            raise Rejected(Reason.WRONG_VALUES, f"with configuration {specs[number].configuration}: {raised}")


def _uneven(workload: Workload) -> int:
    """Number of sizes that are multiples of no block."""
    return sum(size % _BLOCK > 0 for spec in workload.tensors for size in spec.shape)


def _even(workload: Workload) -> int:
    """Number of sizes that are multiples of most blocks."""
    return sum(size % _UNIT == 0 for spec in workload.tensors for size in spec.shape)


def _alternatives(own: Sequence[Workload], batch: _Batch) -> list[FurtherCall]:
    """Calls to make in place of those that decided nothing, or that the candidate refused.

    Some candidates need multiples of 64.
    """
    found = list[FurtherCall]()
    for index, (call, run) in enumerate(zip(batch.calls, batch.runs, strict=True)):
        if run is None and call.otherwise and not batch.reference.decides(index):
            found.append(call.otherwise)
        if run is not None and run.raised and call.resized:
            even = rounded(own, call.workload, _UNIT)
            found += [replace(call, workload=even, requires=None, otherwise=None)] if even else []
    return found


def _logs(batch: _Batch) -> list[str]:
    pairs = zip(batch.calls, batch.runs, strict=True)
    return [launch for call, run in pairs if call.resized and run and run.call for launch in run.launch_log]
