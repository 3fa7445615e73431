"""The task of a verification: the two sources, and the trials with their tensors."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.sandbox.inputs import (
    ECHOED,
    ENDS,
    KINDS,
    KINDS_OF_VALUES,
    MASKS,
    NAMED,
    draw_far_state,
    draw_gradient,
    draw_inputs,
    draw_state,
    echo,
)
from kernelquarry.pipeline.sandbox.jobs.calls import STATE_SETS, InputSpec, ModuleSource, TrialCall
from kernelquarry.pipeline.sandbox.judge import FACTOR
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.records import (
    CANDIDATE_ENTRY_POINT,
    ENTRY_POINT,
    Candidate,
    Engine,
    Probed,
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

from .source_constants import SourceConstants, code_alone

_SLACK = 1.5  # factor over the expected error of a sequential sum
_LONG_SUM = 1024  # terms
_MIN_NUDGE = 4  # units in the last place
_SEED_BITS = 8  # low bits of a seed, which number the trials of a task; the other bits are the same in all of them
FAR = "far"  # the set of weights that are far from those of constructors and trainings
FLIPPED = "flipped"  # the same with other signs
_IGNORED = re.compile(r"\bignore_index\s*(?::\s*int\s*)?=\s*(-?\d+)")  # a label that stands for none
_ROUND, _HALVES = re.compile(r"\.round\("), (0.5, 2.5)  # to even
# Functions of NaN, of which each takes an argument of `forward`.
_OF_NAN = r"\b(?:isnan|isfinite|nan_to_num|nanmean|nansum)\(\s*(?:{names})\b|\b(?:{names})\.(?:isnan|isfinite|nan)"
# Distributions on which a reference may raise.
_REFUSABLE = ("shifted_strided", "special", "sparse", *KINDS_OF_VALUES, NAMED)
_HALF = frozenset({"float16", "bfloat16"})
_TARGET = "sm_90"  # of verifications without a GPU


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """Settings of a verification.

    `limits.cpu_s` limits the time of a CPU or GPU that a candidate needs. `limits.wall_s` only ends guests that wait,
    and is generous, so that a busy machine rejects no candidate.
    """

    target: str | None = None  # GPU architecture to compile for; None: the GPU's own, else sm_90; "": compile for none
    find_counterexamples: bool = True  # search for the smallest failing call of a rejected candidate
    narrows: bool = False  # a way that large calls alone go is no reason to reject, but outside of the claim
    engine: Engine | None = None  # None: traces on a GPU if there is one, and guests where traces fail
    limits: Limits = field(default_factory=lambda: Limits(wall_s=180.0, cpu_s=60))  # of each guest

    def target_on(self, sandbox: Sandbox) -> str:
        """The target for which a candidate must compile; "" for none."""
        if self.target is not None:
            return self.target
        return _TARGET if sandbox.gpus is None else sandbox.gpus.description.target


@dataclass(frozen=True, slots=True)
class Task:
    """The fields of a candidate or published row that verification needs."""

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
    by_model: bool = False  # a model wrote `triton_code`, possibly with the intent to deceive
    guards: tuple[str, ...] = ()
    training: bool = False  # a backward follows each call
    dtype: str = "float32"  # both modules are cast to it if it is a half dtype, and inputs are drawn in it
    given: Workload | None = None  # the file's own call, if it is too large for a workload

    @property
    def reference_code(self) -> str:
        """The reference without comments and docstrings, which decide nothing."""
        return code_alone(self.python_code)

    @property
    def is_half(self) -> bool:
        """True if both modules, an input or a weight have a half dtype."""
        inputs = [spec.dtype for workload in self.workloads for spec in workload.tensors]
        return not _HALF.isdisjoint((self.dtype, *inputs, *(spec.dtype for spec in self.state)))

    @property
    def calls(self) -> tuple[Workload, ...]:
        """The workloads, then enlarged and multiplied ones if the candidate is shape-general; trials use the index."""
        larger = (*enlarged(self.workloads), *multiplied(self.workloads)) if self.shape_general else ()
        return (*self.workloads, *larger)

    def may_refuse(self, call: int) -> bool:
        """True if the candidate may raise on the call: never on a workload of the row.

        On larger calls, a model's candidate may always raise, and a lowered one only where its guards do not hold.
        """
        return call >= len(self.workloads) and (self.by_model or not hold(self.guards, self.calls[call]))

    @property
    def enlarged(self) -> range:
        """Indices of the enlarged calls in `calls`."""
        first = len(self.workloads)
        return range(first, first + len(enlarged(self.workloads)) if self.shape_general else first)

    @property
    def first_seed(self) -> int:
        """Seed of the first trial. A model's source determines it, so that the source cannot contain the answers."""
        digest = hashlib.sha256(self.triton_code.encode(errors="surrogatepass")).digest()
        return int.from_bytes(digest[:4], "little") << _SEED_BITS if self.by_model else 0

    @property
    def reference_source(self) -> ModuleSource:
        return ModuleSource(self.python_code, ENTRY_POINT, self.init_args, self.dtype)

    @property
    def candidate_source(self) -> ModuleSource:
        return ModuleSource(self.triton_code, CANDIDATE_ENTRY_POINT, self.init_args, self.dtype)

    @classmethod
    def of_candidate(cls, candidate: Candidate) -> Task:
        return cls._of(candidate, candidate.probed, candidate.training, candidate.dtype)

    @classmethod
    def of_row(cls, row: Row) -> Task:
        return cls._of(row, row, isinstance(row, TrainingPair), row.dtype if isinstance(row, Variant) else "float32")

    @classmethod
    def _of(cls, kernel: Candidate | Row, module: Probed | Row, training: bool, dtype: str) -> Task:
        return cls(
            id=kernel.id,
            python_code=module.python_code,
            triton_code=kernel.triton_code,
            init_args=module.init_args,
            workloads=module.workloads,
            state=module.state,
            kernels=kernel.kernels,
            purity=kernel.purity,
            extern_ops=kernel.extern_ops,
            shape_general=kernel.shape_general,
            by_model=kernel.generator.kind != "inductor",
            guards=kernel.guards,
            training=training,
            dtype=dtype,
        )


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A call of the task, and how its inputs and weights are drawn."""

    workload: int  # index in `Task.calls`
    seed: int
    distribution: str
    weights: str = ""  # name of a set of weights; "": one of the two sets that are drawn for trials, by the seed

    @property
    def strided(self) -> bool:
        """True if the inputs are not contiguous, each at an offset in a larger buffer."""
        return self.distribution.endswith("_strided")

    @property
    def state(self) -> str:
        """Key of the trial's set of weights."""
        return self.weights or str(self.seed % STATE_SETS)


@dataclass(frozen=True, slots=True)
class Call:
    """A single trial, with all that determines its tensors."""

    task: Task  # with one workload
    trial: PlannedTrial

    @classmethod
    def of(cls, task: Task, workload: Workload, seed: int, distribution: str) -> Call:
        return cls(replace(task, workloads=(workload,)), PlannedTrial(0, seed, distribution))


def plan(task: Task) -> tuple[PlannedTrial, ...]:
    """The trials of a task: few and diverse, as the interpreter is slow.

    The first workload gets four trials, with different values and weights in the same shapes. A shape-general
    candidate also gets one trial for each other workload and for larger ones, with values that saturate no function, so
    that a wrong address changes the outputs.

    A lowered candidate has PyTorch's semantics: it must accept non-contiguous inputs, and keep NaN and infinities in
    place. Authors of kernels usually leave both to the caller, so a model's candidate gets neither. It gets values of
    one sign where blocks are longer than rows, so that the padding of a block must not affect the result.
    """
    others = list(range(1, len(task.workloads))) if task.shape_general else []
    odd = uneven(task) if task.by_model else 0
    shifted = "shifted" if task.by_model else "shifted_strided"
    drawn = [(0, "normal"), (0, "scaled"), (odd or 0, shifted), (odd or 0, "faint")]
    drawn += [(workload, ("heavy_tailed", "normal")[workload % 2]) for workload in others] or [(0, "heavy_tailed")]
    drawn += [(workload, "normal") for workload in _larger(task)]
    if task.by_model:
        drawn += [(0, "sparse"), (_workload_with_rows(task), "assorted")]
        drawn += [(_workload_with_rows(task), NAMED)] if source_values(task) else []
        drawn += [(0, "special")] if _takes_nan(task) else []
    elif _keeps_nan(task):
        drawn.append((0, "special"))
    if odd is None:
        drawn += [(workload, kind) for workload in task.enlarged[:1] for kind in (shifted, "faint")]
    seeds = count(task.first_seed)
    return tuple(PlannedTrial(workload, next(seeds), distribution) for workload, distribution in drawn)


def _keeps_nan(task: Task) -> bool:
    """False with an FFT: cuFFT transforms two real rows as one complex row, so a NaN spreads to both."""
    return not any("_fft_" in name for name in task.extern_ops)


def _takes_nan(task: Task) -> bool:
    """True if the module has a function of NaN, of one of its inputs."""
    names = "|".join(re.escape(spec.name) for spec in task.workloads[0].tensors)
    return bool(names) and re.search(_OF_NAN.format(names=names), task.reference_code) is not None


def source_values(task: Task) -> tuple[float, ...]:
    """Constants of the sources that the distribution `named` draws, and halves if the module rounds to even."""
    named = SourceConstants(task.triton_code, f"{task.python_code}\n{task.init_args}").values
    halves = _HALVES if _ROUND.search(task.reference_code) else ()
    return (*halves, *(n for n in named if n not in halves))[:KINDS]


def exact_values(task: Task, trial: PlannedTrial) -> tuple[float, ...]:
    """Values that nudged runs of the reference do not move: constants of the sources, or the ends of a range."""
    if trial.distribution == ENDS:
        return tuple({float(end) for spec in task.calls[trial.workload].tensors for end in (spec.low, spec.high)})
    return source_values(task) if trial.distribution == NAMED else ()


def uneven(task: Task) -> int | None:
    """Index of the workload with the most free sizes that are not powers of two; None if all are.

    In such a workload, blocks are longer than rows, since Triton's blocks have power-of-two sizes.
    """
    counts = _counts_of_uneven(task)
    return counts.index(max(counts)) if any(counts) else None


def _workload_with_rows(task: Task) -> int:
    """Index of the most uneven workload among those with a row for each kind of `assorted`, or with the most rows."""
    counts = _counts_of_uneven(task)
    rows = [
        min(KINDS, max((math.prod(spec.shape[:-1]) for spec in workload.tensors), default=1))
        for workload in task.workloads[: len(counts)]
    ]
    return max(range(len(counts)), key=lambda call: (rows[call], counts[call], -call))


def _counts_of_uneven(task: Task) -> list[int]:
    """For each workload that the candidate claims, the number of free sizes that are not powers of two."""
    if not task.shape_general:
        return [0]
    free = free_sizes(task.workloads)
    return [sum(size[call].bit_count() > 1 for size in free) for call in range(len(task.workloads))]


def _larger(task: Task) -> list[int]:
    """Indices of the enlarged calls. If guards forbid one of them, also of the multiplied calls that guards allow."""
    if all(hold(task.guards, task.calls[call]) for call in task.enlarged):
        return list(task.enlarged)
    multiples = range(task.enlarged.stop, len(task.calls))
    return [*task.enlarged, *(call for call in multiples if hold(task.guards, task.calls[call]))]


def without(task: Task, trials: Sequence[PlannedTrial], rejected: Collection[int]) -> tuple[PlannedTrial, ...]:
    """The trials without those on which the reference raises, with replacements where there are any."""
    replacements = {"shifted_strided": "shifted"}
    kept = []
    for index, trial in enumerate(trials):
        if index not in rejected:
            kept.append(trial)
        elif trial.distribution in replacements:
            kept.append(replace(trial, distribution=replacements[trial.distribution]))
    if any(trials[index].workload in task.enlarged for index in rejected):
        seed = max(trial.seed for trial in trials) + 1
        planned = {trial.workload for trial in trials}
        others = [call for call in range(task.enlarged.stop, len(task.calls)) if call not in planned]
        kept += [PlannedTrial(call, seed + place, "normal") for place, call in enumerate(others)]
    return tuple(kept)


def replan(trials: Sequence[Trial]) -> tuple[PlannedTrial, ...]:
    """The planned trials of a verdict's trials."""
    return tuple(PlannedTrial(trial.workload, trial.seed, trial.distribution) for trial in trials)


def draw(task: Task, trials: Sequence[PlannedTrial]) -> Tensors:
    """Draw the tensors of all trials: `input.<trial>.<i>`, `gradient.<trial>` and `state.<set>.<name>`."""
    tensors: Tensors = {}
    calls = task.calls
    for index, trial in enumerate(trials):
        inputs = draw_inputs(calls[trial.workload], trial.distribution, trial.seed, _numbers(task, trial))
        tensors |= {f"input.{index}.{i}": value for i, value in enumerate(inputs)}
        if task.training:
            tensors[f"gradient.{index}"] = draw_gradient(trial.seed)
    first = trials[0].seed >> _SEED_BITS
    for key in range(STATE_SETS):
        drawn = draw_state(task.state, STATE_SETS * first + key)
        tensors |= {f"state.{key}.{name}": value for name, value in drawn.items()}
    for weights in {FAR, FLIPPED}.intersection(trial.weights for trial in trials):
        far = draw_far_state(task.state, task.first_seed, flipped=weights == FLIPPED)
        tensors |= {f"state.{weights}.{name}": value for name, value in far.items()}
    for index, trial in enumerate(trials):
        if trial.distribution == ECHOED:
            specs = calls[trial.workload].tensors
            state = [value for name, value in tensors.items() if name.startswith(f"state.{trial.state}.")]
            echo([tensors[f"input.{index}.{i}"] for i in range(len(specs))], specs, state)
    return tensors


def _numbers(task: Task, trial: PlannedTrial) -> tuple[float, ...]:
    """Constants of the sources that the trial's inputs are drawn from."""
    if trial.distribution in MASKS:
        return tuple(int(n) for n in _IGNORED.findall(f"{task.reference_code}\n{task.init_args}"))
    return source_values(task) if trial.distribution == NAMED else ()


def trial_calls(task: Task, trials: Sequence[PlannedTrial], limit_s: float = 0.0) -> tuple[TrialCall, ...]:
    """The calls of the trials, as guests take them; with `limit_s`, the reference may refuse any of them."""
    workloads, calls = task.calls, []
    for trial in trials:
        workload = workloads[trial.workload]
        calls.append(
            TrialCall(
                args=workload.args,
                kwargs=workload.kwargs,
                inputs=len(workload.tensors),
                state=trial.state,
                strided=trial.strided,
                refusable=bool(limit_s) or trial.workload >= len(task.workloads) or trial.distribution in _REFUSABLE,
                optional=task.may_refuse(trial.workload),
                limit_s=limit_s,
            )
        )
    return tuple(calls)


def input_specs(workload: Workload) -> tuple[InputSpec, ...]:
    """The inputs of a call, for guests and executors that draw them themselves."""
    return tuple(InputSpec(spec.shape, spec.dtype, spec.low, spec.high) for spec in workload.tensors)


def shapes_of(workload: Workload) -> str:
    """Shapes of a call's inputs, for evidence."""
    return ", ".join(str(list(spec.shape)) for spec in workload.tensors)


def nudges(task: Task, workloads: Sequence[Workload] = ()) -> tuple[int, ...]:
    """Perturbations of the inputs in the honest runs after the first, in units in the last place.

    A kernel may sum a dot product of n terms sequentially. To first order, the result is the exact sum of terms that
    are each off by sqrt(n / 2) roundoffs, while the blocked sum of a library is off by a few. The second perturbed run
    measures the effect. The judge allows `FACTOR` times the measured error, so short sums need one unit only.

    Args:
        workloads: calls in which the candidate may sum a whole input sequentially, by atomics for example; then n is
            the size of the input, and the second perturbation has a minimum, as such calls are many and one may be
            right by chance.
    """
    shapes = [spec.shape[1:] for spec in task.state if len(spec.shape) > 1]
    shapes += [spec.shape for workload in workloads for spec in workload.tensors]
    n = max(map(math.prod, shapes), default=1)
    return 1, max(_MIN_NUDGE if workloads else 1, round(_SLACK * math.sqrt(n / 2) / FACTOR))


def terms(
    workload: Workload, state: Sequence[StateSpec], outputs: Sequence[Sequence[int]], in_order: bool = False
) -> int:
    """Estimate the number of terms that are summed for one element of the outputs, given the outputs' shapes.

    The largest of: input elements per output element, the longest dimension of an input, and a parameter's fan-in.
    """
    shapes = [spec.shape for spec in workload.tensors]
    smallest = min((math.prod(shape) for shape in outputs), default=1)
    estimates = [math.prod(shape) // max(1, smallest) for shape in shapes]
    estimates += [size for shape in shapes for size in shape]
    estimates += [math.prod(spec.shape[1:]) for spec in state if len(spec.shape) > 1]
    most = max(1, *estimates, 1)
    # Where thousands of terms of one sign are added one by one, as by atomics, a sum rounds in one direction for long:
    # it is off by a share of the number of terms in roundoffs, and no longer by its root.
    return most * max(1, most // _LONG_SUM) if in_order else most
