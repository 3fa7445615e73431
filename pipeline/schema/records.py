"""The records that flow from stage to stage, and the row that is published.

Each stage wraps the record before it: `SourceFile -> Module -> Probed -> Lowered -> Candidate ->
Verified -> Pair`. Every record is frozen; ids are content addresses (`ids`). Trees of arguments and
outputs are canonical JSON with `{"tensor": i}` at their leaves, so that the Arrow schema stays flat.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .provenance import Distillation, Environment, Explanation, Generator, Licence, SourceRef

SCHEMA_VERSION = 4
ENTRY_POINT = "Model"  # the class's name in `python_code`, as KernelBench expects
CANDIDATE_ENTRY_POINT = "ModelNew"  # the class's name in `triton_code`


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file as it was read; no code of it has run."""

    source: SourceRef
    licence: Licence
    text: str

    @property
    def id(self) -> str:
        return f"{self.source.package}@{self.source.revision}/{self.source.path}"


@dataclass(frozen=True, slots=True)
class Module:
    """An nn.Module with all that it needs, in one importable source whose class is called `Model`."""

    id: str  # ids.module_id(code)
    name: str  # the class's name where it was found
    code: str
    source: SourceRef
    licence: Licence
    imported_files: tuple[str, ...] = ()  # other files of the tree that definitions were taken from
    user: str = ""  # code of a module of the tree that makes one of these, for probing; later records have none


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """How to draw one input tensor. Floating dtypes are drawn by a trial's distribution."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # "float32", "int64", "bool", ...
    low: int = 0  # integer dtypes: drawn from [low, high)
    high: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """One call of `forward`: its tensors, and the trees of arguments that hold them."""

    tensors: tuple[TensorSpec, ...]
    args: str  # canonical JSON list; a tensor is {"tensor": index}
    kwargs: str = "{}"  # canonical JSON object


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One entry of the module's `state_dict`, and the statistics of its initial values."""

    name: str
    kind: str  # "parameter" or "buffer"
    shape: tuple[int, ...]
    dtype: str
    mean: float
    std: float
    minimum: float


@dataclass(frozen=True, slots=True)
class Probed:
    """A module that was seen to run, with the workloads it ran on."""

    module: Module
    init_args: str  # Python source of a list of positional arguments
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    outputs: str  # canonical JSON: tree of the outputs of workload 0, {"tensor": i, "shape": [...], "dtype": ...}
    operators: tuple[str, ...]  # aten operators that ran, sorted
    python_code: str  # module.code with get_inputs() and get_init_inputs()
    graph: str = "[]"  # canonical JSON: a leaf is [what], an operator [name, [what it takes]]; empty if too large
    behaviour: str = ""  # digest of outputs on inputs that all modules share, "" if they tell nothing
    behaviours: tuple[str, ...] = ()  # the same for each number of axes, and with all sizes made one; sorted
    cluster: str = ""  # ids.cluster_id of what a chain of kin connects it with

    @property
    def id(self) -> str:
        return self.module.id


class Source(StrEnum):
    """What a graph input is bound to."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"  # a tensor attribute that is in no state_dict
    LITERAL = "literal"  # numbers that forward makes a tensor of
    INPUT = "input"
    SAVED = "saved"  # of a backward: a result of the forward's graph
    SIZE = "size"  # of a backward: such a result that is a number
    GRADIENT = "gradient"  # of a backward: the gradient of an output


@dataclass(frozen=True, slots=True)
class Binding:
    """A graph input and what it is, known from the trace's order and never from its shape."""

    argument: str  # the generated code's name for it, "arg0_1"
    source: Source
    name: str  # qualified name of the state; index of the tensor in the workload, or of the result; numbers as JSON


@dataclass(frozen=True, slots=True)
class Backward:
    """Inductor's source for the gradients. Its results are those of the forward's arguments, None where none flows."""

    inductor_code: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class Lowered:
    """Inductor's source for a module, untidied, with the meaning of each argument."""

    probed: Probed
    inductor_code: str
    bindings: tuple[Binding, ...]
    outputs: str  # canonical JSON: tree of forward's result; {"output": i} is the i-th graph output
    shape_general: bool  # sizes that differ between the workloads are run-time arguments
    generator: Generator
    guards: tuple[str, ...] = ()  # what must be true of those sizes, see `transforms.guards`
    backward: tuple[Backward, ...] = ()  # none or one; with it, what it needs follows the results of `inductor_code`
    dtype: str = "float32"  # what the module and its inputs were cast to, "float32" if they were not

    @property
    def id(self) -> str:
        return self.probed.id


class Purity(StrEnum):
    """Whether Triton alone computes the result. A label with proof, see `docs/trust.md`."""

    PURE = "pure"
    MIXED = "mixed"  # some operators run in aten or a vendor library; `extern_ops` names them


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel that claims to compute what the module computes."""

    probed: Probed
    triton_code: str  # one file with the class `ModelNew`, whose imports are torch's, triton's and its constructor's
    kernels: tuple[str, ...]  # names of its triton.jit kernels that forward launches
    purity: Purity
    extern_ops: tuple[str, ...]
    shape_general: bool
    generator: Generator
    inductor_code: str  # "" for a model's candidate
    guards: tuple[str, ...] = ()  # conditions on sizes that `forward` checks, see `transforms.guards`
    distillation: tuple[Distillation, ...] = ()  # one if a model wrote it
    training: bool = False  # it gives gradients too, and is verified with them
    dtype: str = "float32"  # what module, candidate and inputs are cast to, "float32" if they are not
    autotuned: bool = False  # some of its kernels choose among several launch options

    @property
    def id(self) -> str:
        """The module's; of a model's answers, of which a module may have several, with the request that it answers."""
        if not self.distillation:
            return self.probed.id
        last = self.distillation[0].turns[-1]
        return f"{self.probed.id}/{last.request[:12]}-{last.sample}"


class Tier(StrEnum):
    """How a verdict was reached; a row lists each that it holds."""

    COMPILED = "compiled"  # ahead of time, for each target in `targets`
    INTERPRETED = "interpreted"  # on the CPU, by Triton's interpreter
    EXECUTED = "executed"  # on a GPU


class Engine(StrEnum):
    """What ran the candidate's kernels, see `docs/stages/verify.md`."""

    INTERPRETER = "interpreter"  # Triton's, on the CPU
    TRACE = "trace"  # an executor with a GPU replayed the launches; the candidate's Python never met it
    GUEST = "guest"  # a GPU in the candidate's own guest


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of the candidate with the oracle. Errors are relative to the oracle's scale."""

    workload: int
    seed: int
    distribution: str
    error: float  # candidate against the float64 oracle
    honest_error: float  # eager against the float64 oracle
    tolerance: float  # the error that was allowed


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the host concluded from the guests' observations."""

    tiers: tuple[Tier, ...]
    engine: Engine
    targets: tuple[str, ...]  # "sm_80", ...
    trials: tuple[Trial, ...]
    launches: int  # kernel launches seen in one forward of workload 0
    launched_kernels: tuple[str, ...]
    deterministic: bool  # a repeated run gave the same bytes
    written: float  # share of the bytes of outputs that is wrong without the kernels; views of inputs do not count
    impostors: tuple[str, ...]  # impostors that were tried and failed, as they must
    mutants: int  # of this kernel, with one mistake each, that went through the same checks
    survivors: tuple[str, ...]  # mistakes that no check noticed, or that are none
    environment: Environment

    @property
    def worst_ratio(self) -> float:
        """Largest error as a share of the error that was allowed."""
        return max((t.error / t.tolerance for t in self.trials), default=0.0)


@dataclass(frozen=True, slots=True)
class Verified:
    candidate: Candidate
    verdict: Verdict
    explanations: tuple[Explanation, ...] = ()

    @property
    def id(self) -> str:
        return self.candidate.id


@dataclass(frozen=True, slots=True)
class CounterExample:
    """The smallest call that was found on which a candidate fails. The first three fields draw it again."""

    workload: Workload
    seed: int
    distribution: str
    found: str  # what is wrong there
    output: str  # the element that is furthest off, "output 0[3, 17]"; "" where the values are not what is wrong
    expected: float  # the oracle's value there, NaN and infinities as they are
    actual: float  # the candidate's


@dataclass(frozen=True, slots=True)
class Timed:
    """How long one contender took: the median and the quartiles of its runs, in microseconds."""

    name: str  # "eager", "compile" or "candidate"
    median_us: float
    low_us: float
    high_us: float
    runs: int


@dataclass(frozen=True, slots=True)
class Timing:
    """The reference, compiled and not, and the candidate, timed in turns on one GPU. See `docs/stages/time.md`."""

    workload: Workload
    enlarged: bool  # False: it is the row's first workload, small enough for launches to take most of the time
    engine: Engine  # what ran the candidate; with GUEST its Python was where the clock was
    contenders: tuple[Timed, ...]  # those that could be timed
    left_out: str  # why the others could not
    floor_us: float  # no kernel on this GPU takes less, 0 where that is not known
    slope_us: float  # wall clock for a call, of many in a row, by the host's own executor; 0 where it has no program
    suspect: str  # why the numbers do not fit together; "" if they do
    environment: Environment

    @property
    def over_eager(self) -> float:
        """How many times as fast as eager the candidate is, 0 if that is not known."""
        return self._speedup("eager")

    @property
    def over_compile(self) -> float:
        """How many times as fast as `torch.compile` the candidate is, 0 if that is not known."""
        return self._speedup("compile")

    def _speedup(self, over: str) -> float:
        medians = {timed.name: timed.median_us for timed in self.contenders}
        return medians[over] / medians["candidate"] if {over, "candidate"} <= medians.keys() else 0.0


@dataclass(frozen=True, slots=True)
class Measures:
    """What the filters measured of a row that they let pass, see `docs/stages/screen.md`. -1: it was not measured."""

    computing_operators: int = -1  # distinct ones; making, viewing and copying tensors is no computing
    characters: int = -1  # of both sides together
    non_ascii: float = -1.0  # share of the characters of `python_code`
    credentials: int = -1  # places that look like one
    personal: int = -1  # e-mail addresses and telephone numbers


@dataclass(frozen=True, slots=True)
class Row:
    """What the rows of both configs hold. Field for field documented in `docs/schema.md`, as all of them."""

    id: str
    module_name: str
    entry_point: str
    python_code: str
    triton_code: str
    inductor_code: str
    generator: Generator
    source: SourceRef
    licence: Licence
    imported_files: tuple[str, ...]
    init_args: str
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    operators: tuple[str, ...]
    kernels: tuple[str, ...]
    purity: Purity
    extern_ops: tuple[str, ...]
    shape_general: bool
    guards: tuple[str, ...]
    distillation: tuple[Distillation, ...]  # one if a model wrote `triton_code`


@dataclass(frozen=True, slots=True)
class Pair(Row):
    """One row of the dataset's config `pairs`: a candidate that was verified."""

    verdict: Verdict
    timings: tuple[Timing, ...] = ()  # none or one: only a GPU's time is worth a label
    explanations: tuple[Explanation, ...] = ()
    measures: Measures = Measures()
    marks: tuple[str, ...] = ()  # among the pairs of its module: "fastest", "shortest", "purest"; "near_lowered"
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class TrainingPair(Pair):
    """One row of the config `backward`: a pair whose gradients were verified too. See `docs/backward.md`."""


@dataclass(frozen=True, slots=True)
class Variant(Pair):
    """One row of the config `variants`: another kernel for a module that may have a pair. See `docs/variants.md`."""

    dtype: str = "float32"  # what `Model`, `ModelNew` and floating-point inputs are cast to; "float32": nothing is
    autotuned: bool = False  # some kernels have `triton.autotune`; each of their configurations was verified


@dataclass(frozen=True, slots=True)
class Rejection(Row):
    """One row of the dataset's config `rejected`: a candidate that was not verified, and why."""

    reason: str  # code of the `Reason`
    evidence: str  # measured value
    counter_examples: tuple[CounterExample, ...]  # none or one
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Contamination:
    """One row of the config `contaminated`: a module that overlaps a benchmark, without its text."""

    id: str
    code_sha256: str  # of the `python_code` that is not published
    source: SourceRef
    licence: Licence
    rungs: tuple[str, ...]  # of the ladder that found it, sorted
    problems: tuple[str, ...]  # "benchmark/name", sorted
    evidence: str  # what each rung measured
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION
