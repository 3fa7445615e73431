"""What is verified, on what: the two sources, and the trials with their tensors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from kernelquarry.pipeline.sandbox import Limits
from kernelquarry.pipeline.sandbox.inputs import KINDS, NAMED, draw_gradient, draw_inputs, draw_state
from kernelquarry.pipeline.sandbox.judge import FACTOR
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.records import (
    Candidate,
    Engine,
    Purity,
    Row,
    StateSpec,
    TrainingPair,
    Trial,
    Variant,
    Workload,
)
from kernelquarry.transforms.workloads.guards import hold
from kernelquarry.transforms.workloads.resize import enlarged, free_sizes, multiplied

from .source_constants import SourceConstants

_SLACK = 1.5  # over what a sum in order is expected to be off by
_FEW = 4
_SEED_BITS = 8  # of a seed that number a task's trials; those above are the same in all of them
STATE_SETS = 2  # sets of weights; a trial takes the one of its seed
_REFUSABLE = ("shifted_strided", "special", "sparse", "assorted", NAMED)  # a reference may raise on them
_HALF = frozenset({"float16", "bfloat16"})
MODEL_TARGET = "sm_90"  # that all answers of models compile for


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """What decides is the time that a candidate needs, `limits.cpu_s` of a processor or of a GPU; `limits.wall_s` is
    for those that only wait, and generous, so that a busy machine rejects nothing."""

    targets: tuple[str, ...] = ("sm_80", "sm_90", "sm_100", "gfx942")  # () leaves the tier out
    find_counterexamples: bool = True  # look for the smallest call on which a rejected candidate fails
    mutants: int = 2  # of the candidate's own kernel, which its checks must tell from it
    engine: Engine | None = None  # None: traces where there is a GPU, guests for what they cannot say
    limits: Limits = field(default_factory=lambda: Limits(wall_s=180.0, cpu_s=60))  # of each guest

    def needed(self, task: Task) -> tuple[str, ...]:
        """Targets that the candidate must compile for. A model's may need what not all GPUs have."""
        if task.by_model and MODEL_TARGET in self.targets:
            return (MODEL_TARGET,)
        return self.targets


@dataclass(frozen=True, slots=True)
class Task:
    """The part of a candidate, or of a published row, that verification needs."""

    id: str
    python_code: str
    triton_code: str
    init_args: str
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    kernels: tuple[str, ...]
    purity: Purity
    extern_ops: tuple[str, ...]
    shape_general: bool
    by_model: bool = False  # what wrote `triton_code` could mean to deceive
    guards: tuple[str, ...] = ()
    training: bool = False  # calls are followed by their backward
    dtype: str = "float32"  # what both modules are cast to, if it is a half one; inputs are drawn so

    @property
    def is_half(self) -> bool:
        """Whether there is something in a half dtype that it computes with: both modules, an input or a weight."""
        given = [spec.dtype for workload in self.workloads for spec in workload.tensors]
        return not _HALF.isdisjoint((self.dtype, *given, *(spec.dtype for spec in self.state)))

    @property
    def calls(self) -> tuple[Workload, ...]:
        """What trials number: the workloads; behind them, if the candidate is for all sizes, those enlarged, then
        those multiplied."""
        larger = (*enlarged(self.workloads), *multiplied(self.workloads)) if self.shape_general else ()
        return (*self.workloads, *larger)

    def may_refuse(self, call: int) -> bool:
        """Whether the candidate may raise there: never on a workload. What a model refuses, it does not get wrong; what
        was lowered for all sizes refuses those alone that its guards name."""
        return call >= len(self.workloads) and (self.by_model or not hold(self.guards, self.calls[call]))

    @property
    def enlarged(self) -> range:
        """Numbers of the enlarged calls."""
        first = len(self.workloads)
        return range(first, first + len(enlarged(self.workloads)) if self.shape_general else first)

    @property
    def first_seed(self) -> int:
        """Of its trials. What a model wrote cannot have the answers by heart: it decides by its text what is drawn."""
        digest = hashlib.sha256(self.triton_code.encode(errors="surrogatepass")).digest()
        return int.from_bytes(digest[:4], "little") << _SEED_BITS if self.by_model else 0

    @classmethod
    def of_candidate(cls, candidate: Candidate) -> Task:
        probed = candidate.probed
        return cls(
            id=candidate.id,
            python_code=probed.python_code,
            triton_code=candidate.triton_code,
            init_args=probed.init_args,
            workloads=probed.workloads,
            state=probed.state,
            kernels=candidate.kernels,
            purity=candidate.purity,
            extern_ops=candidate.extern_ops,
            shape_general=candidate.shape_general,
            by_model=candidate.generator.kind == "model",
            guards=candidate.guards,
            training=candidate.training,
            dtype=candidate.dtype,
        )

    @classmethod
    def of_row(cls, row: Row) -> Task:
        return cls(
            id=row.id,
            python_code=row.python_code,
            triton_code=row.triton_code,
            init_args=row.init_args,
            workloads=row.workloads,
            state=row.state,
            kernels=row.kernels,
            purity=row.purity,
            extern_ops=row.extern_ops,
            shape_general=row.shape_general,
            by_model=row.generator.kind == "model",
            guards=row.guards,
            training=isinstance(row, TrainingPair),
            dtype=row.dtype if isinstance(row, Variant) else "float32",
        )


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One call: which of the task's, drawn how."""

    workload: int
    seed: int
    distribution: str

    @property
    def strided(self) -> bool:
        """Whether the inputs are not contiguous, each with an offset into a larger buffer."""
        return self.distribution.endswith("_strided")

    @property
    def state(self) -> str:
        """Name of the set of weights."""
        return str(self.seed % STATE_SETS)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a task alone: all that decides what is drawn for it."""

    task: Task  # of one workload
    trial: PlannedTrial

    @classmethod
    def of(cls, task: Task, workload: Workload, seed: int, distribution: str) -> Call:
        return cls(replace(task, workloads=(workload,)), PlannedTrial(0, seed, distribution))


def plan(task: Task) -> tuple[PlannedTrial, ...]:
    """Few trials that differ in everything: the interpreter is slow, and each must count.

    The first workload is drawn four times, with other values and other weights in the same shapes.
    Every other workload, and larger ones, are drawn once if the candidate claims them, from values that
    saturate nothing: there, a wrong address must show.

    What lowering wrote has PyTorch's own semantics, so it must also take inputs that are not contiguous,
    and leave NaN and infinities where they belong. What a model wrote is asked for neither: it is a custom
    among writers of kernels to leave both to the caller. It is asked for numbers of one sign where blocks are longer
    than rows, so that what fills them may not count.
    """
    others = list(range(1, len(task.workloads))) if task.shape_general else []
    odd = uneven(task) if task.by_model else 0
    shifted = "shifted" if task.by_model else "shifted_strided"
    drawn = [(0, "normal"), (0, "scaled"), (odd or 0, shifted), (odd or 0, "faint")]
    drawn += [(workload, ("heavy_tailed", "normal")[workload % 2]) for workload in others] or [(0, "heavy_tailed")]
    drawn += [(workload, "normal") for workload in _larger(task)]
    drawn += (
        [(0, "sparse"), (_of_many_rows(task), "assorted")] if task.by_model else [(0, "special")] * _keeps_nan(task)
    )
    if task.by_model and values_named(task):
        drawn.append((_of_many_rows(task), NAMED))
    if odd is None:
        drawn += [(workload, kind) for workload in task.enlarged[:1] for kind in (shifted, "faint")]
    seeds = count(task.first_seed)
    return tuple(PlannedTrial(workload, next(seeds), distribution) for workload, distribution in drawn)


def _keeps_nan(task: Task) -> bool:
    """cuFFT transforms two rows of real numbers as one of complex ones, so a NaN is in both."""
    return not any("_fft_" in name for name in task.extern_ops)


def values_named(task: Task) -> tuple[float, ...]:
    """As many as one draw has room for."""
    return SourceConstants(task.triton_code, f"{task.python_code}\n{task.init_args}").values[:KINDS]


def uneven(task: Task) -> int | None:
    """The workload with the most sizes that are no powers of two, where blocks are longer than rows; None if all
    sizes that are free are such powers."""
    counts = _counts_of_uneven(task)
    return counts.index(max(counts)) if any(counts) else None


def _of_many_rows(task: Task) -> int:
    """The same, of the workloads that have a row for each kind of `assorted`, or the most rows."""
    counts = _counts_of_uneven(task)
    rows = [
        min(KINDS, max((math.prod(spec.shape[:-1]) for spec in workload.tensors), default=1))
        for workload in task.workloads[: len(counts)]
    ]
    return max(range(len(counts)), key=lambda call: (rows[call], counts[call], -call))


def _counts_of_uneven(task: Task) -> list[int]:
    """Of each workload that is claimed, how many of the free sizes are no powers of two."""
    if not task.shape_general:
        return [0]
    free = free_sizes(task.workloads)
    return [sum(size[call].bit_count() > 1 for size in free) for call in range(len(task.workloads))]


def _larger(task: Task) -> list[int]:
    """The enlarged calls; those multiplied too, as far as guards allow, if guards forbid one of the enlarged."""
    if all(hold(task.guards, task.calls[call]) for call in task.enlarged):
        return list(task.enlarged)
    multiples = range(task.enlarged.stop, len(task.calls))
    return [*task.enlarged, *(call for call in multiples if hold(task.guards, task.calls[call]))]


def without(task: Task, trials: Sequence[PlannedTrial], refused: Collection[int]) -> tuple[PlannedTrial, ...]:
    """The trials, others in place of those that the reference raises on; it says by that what it does not take."""
    instead = {"shifted_strided": "shifted"}
    kept = []
    for index, trial in enumerate(trials):
        if index not in refused:
            kept.append(trial)
        elif trial.distribution in instead:
            kept.append(replace(trial, distribution=instead[trial.distribution]))
    if any(trials[index].workload in task.enlarged for index in refused):
        seed = max(trial.seed for trial in trials) + 1
        planned = {trial.workload for trial in trials}
        others = [call for call in range(task.enlarged.stop, len(task.calls)) if call not in planned]
        kept += [PlannedTrial(call, seed + place, "normal") for place, call in enumerate(others)]
    return tuple(kept)


def replan(trials: Sequence[Trial]) -> tuple[PlannedTrial, ...]:
    """The trials that a verdict reports."""
    return tuple(PlannedTrial(trial.workload, trial.seed, trial.distribution) for trial in trials)


def draw(task: Task, trials: Sequence[PlannedTrial]) -> Tensors:
    """All tensors of all trials, as the guests name them: `input.<trial>.<i>`, `gradient.<trial>` and
    `state.<set>.<name>`."""
    tensors: Tensors = {}
    calls = task.calls
    for index, trial in enumerate(trials):
        named = values_named(task) if trial.distribution == NAMED else ()
        inputs = draw_inputs(calls[trial.workload], trial.distribution, trial.seed, named)
        tensors |= {f"input.{index}.{i}": value for i, value in enumerate(inputs)}
        if task.training:
            tensors[f"gradient.{index}"] = draw_gradient(trial.seed)
    first = trials[0].seed >> _SEED_BITS
    for key in range(STATE_SETS):
        drawn = draw_state(task.state, STATE_SETS * first + key)
        tensors |= {f"state.{key}.{name}": value for name, value in drawn.items()}
    return tensors


def describe(task: Task, trials: Sequence[PlannedTrial]) -> dict[str, Any]:
    """What every guest is told beside the source: constructor arguments and the calls to make."""
    calls, described = task.calls, []
    for trial in trials:
        workload = calls[trial.workload]
        call = {"args": workload.args, "kwargs": workload.kwargs, "inputs": len(workload.tensors), "state": trial.state}
        refusable = trial.workload >= len(task.workloads) or trial.distribution in _REFUSABLE
        call |= {"strided": trial.strided, "refusable": refusable}
        described.append(call | {"optional": task.may_refuse(trial.workload)})
    states = [str(key) for key in range(STATE_SETS)]
    return {"init_args": task.init_args, "dtype": task.dtype, "states": states, "trials": described}


def describe_inputs(workload: Workload) -> list[dict[str, Any]]:
    """What guests and executors are told where they make the tensors of a call themselves."""
    specs = workload.tensors
    return [{"shape": list(spec.shape), "dtype": spec.dtype, "low": spec.low, "high": spec.high} for spec in specs]


def shapes_of(workload: Workload) -> str:
    """As evidence has them."""
    return ", ".join(str(list(spec.shape)) for spec in workload.tensors)


def nudges(task: Task, in_order: bool = False) -> list[int]:
    """By how many units in the last place the values of the honest runs beside the first are moved.

    A kernel may add up a dot product of n terms one after the other. To first order that gives the exact sum of
    terms that are each off by sqrt(n / 2) roundoffs, where a library's blocked sum stays within few: the second run
    shows what becomes of them. The judge allows `FACTOR` times what it sees, so short sums need no more than one.
    Terms are those of a dot product with weights, or all of an input if these may be added up `in_order`, and then a
    few at least: of the many calls where that is so one may be right by luck.
    """
    shapes = [spec.shape[1:] for spec in task.state if len(spec.shape) > 1]
    shapes += [spec.shape for workload in task.workloads for spec in workload.tensors if in_order]
    most = max(map(math.prod, shapes), default=1)
    return [1, max(_FEW if in_order else 1, round(_SLACK * math.sqrt(most / 2) / FACTOR))]


def terms(workload: Workload, state: Sequence[StateSpec], outputs: Sequence[Sequence[int]]) -> int:
    """An estimate of how many terms are summed for one element of the outputs, given their shapes.

    The largest of: input elements for each output element, the longest dimension of an input, and the
    fan-in of a parameter.
    """
    shapes = [spec.shape for spec in workload.tensors]
    smallest = min((math.prod(shape) for shape in outputs), default=1)
    estimates = [math.prod(shape) // max(1, smallest) for shape in shapes]
    estimates += [size for shape in shapes for size in shape]
    estimates += [math.prod(spec.shape[1:]) for spec in state if len(spec.shape) > 1]
    return max(1, *estimates, 1)
