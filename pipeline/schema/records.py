"""The records that flow from stage to stage, and the row that is published.

Each stage wraps the record of the stage before: `SourceFile -> Module -> Probed -> Lowered -> Candidate -> Verified ->
Pair`. Every record is frozen; ids are content addresses (`ids`). Nested arguments and outputs are canonical JSON with
`{"tensor": i}` at their leaves, so that the Arrow schema stays flat.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .provenance import Distillation, Environment, Explanation, Generator, Licence, SourceRef

SCHEMA_VERSION = 5
ENTRY_POINT = "Model"  # the class's name in `python_code`, as KernelBench expects
CANDIDATE_ENTRY_POINT = "ModelNew"  # the class's name in `triton_code`


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file, as read. Its code has not run."""

    source: SourceRef
    licence: Licence
    text: str

    @property
    def id(self) -> str:
        return f"{self.source.package}@{self.source.revision}/{self.source.path}"


@dataclass(frozen=True, slots=True)
class SliceOrigin:
    """The module that a slice was cut from, see `docs/reference/stages/slice.md`."""

    module: str  # id of that module
    name: str  # original name of its class
    signature: str  # digest of its operators, which copies of it share; "" if it has none
    nodes: tuple[
        str, ...
    ]  # calls of PyTorch in the slice, in order: "<place in forward>:<layer, function or operator>"
    modules: int  # distinct modules of the run that have a piece of the same pattern


@dataclass(frozen=True, slots=True)
class Module:
    """An nn.Module and all definitions that it needs, as one importable source with the class `Model`."""

    id: str  # ids.module_id(code)
    name: str  # original name of the class
    code: str
    source: SourceRef
    licence: Licence
    imported_files: tuple[str, ...] = ()  # other files of the tree that definitions were taken from
    user: str = ""  # code of a module that constructs this one, as a hint for probe; empty afterwards
    slice_of: tuple[SliceOrigin, ...] = ()  # at most one; then `name` lists the slice's operators


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The recipe to draw one input tensor.

    Floating-point values follow the distribution of the trial. If `low` is less than `high`, they are its values modulo
    the range.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str  # "float32", "int64", "bool", ...
    low: int = 0  # drawn from [low, high); floats without bounds have 0 for both
    high: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """One call of `forward`: the input tensors, and the arguments that hold them."""

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
    """A module that ran in the sandbox, with the workloads on which it ran."""

    module: Module
    init_args: str  # Python source of a list of positional arguments
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    outputs: str  # canonical JSON: tree of the outputs of workload 0, {"tensor": i, "shape": [...], "dtype": ...}
    operators: tuple[str, ...]  # aten operators that ran, sorted
    python_code: str  # module.code with get_inputs() and get_init_inputs()
    graph: str = "[]"  # canonical JSON of the operator graph: [leaf] or [operator, [operands]]; empty if too large
    behaviour: str = ""  # digest of the outputs on standard inputs, "" if not informative
    behaviours: tuple[str, ...] = ()  # the same per number of axes, and with all sizes set to one; sorted
    cluster: str = ""  # ids.cluster_id of the modules that are connected by similarity

    @property
    def id(self) -> str:
        return self.module.id


class Source(StrEnum):
    """The origin of a graph input."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"  # tensor attribute outside the state_dict
    LITERAL = "literal"  # numbers that forward turns into a tensor
    INPUT = "input"
    SAVED = "saved"  # backward only: a tensor result of the forward graph
    SIZE = "size"  # backward only: a scalar result of the forward graph
    GRADIENT = "gradient"  # backward only: the gradient of an output


@dataclass(frozen=True, slots=True)
class Binding:
    """A graph input and its origin, taken from the order of the trace, never guessed from shapes."""

    argument: str  # name in the generated code, such as "arg0_1"
    source: Source
    name: str  # name of the state; index of the input tensor or result; literal numbers as JSON


@dataclass(frozen=True, slots=True)
class Backward:
    """Inductor's source for the gradients: one result per argument of forward, None where no gradient flows."""

    inductor_code: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class Lowered:
    """Inductor's raw source for a module, with the origin of each argument."""

    probed: Probed
    inductor_code: str
    bindings: tuple[Binding, ...]
    outputs: str  # canonical JSON of forward's result; {"output": i} stands for the i-th graph output
    shape_general: bool  # sizes that differ between the workloads are run-time arguments
    generator: Generator
    guards: tuple[str, ...] = ()  # conditions on those sizes, see `transforms.workloads.guards`
    backward: tuple[Backward, ...] = ()  # at most one; its saved values then follow the results of `inductor_code`
    dtype: str = "float32"  # dtype that the module and its inputs were cast to; "float32": not cast

    @property
    def id(self) -> str:
        return self.probed.id


class Purity(StrEnum):
    """Label: is the result computed by Triton alone? The verifier checks it, see `docs/explanation/trust.md`."""

    PURE = "pure"
    MIXED = "mixed"  # some operators run in aten or a vendor library; `extern_ops` names them


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel that is meant to compute the same as its module, before verification."""

    probed: Probed
    triton_code: str  # one file with the class `ModelNew`
    kernels: tuple[str, ...]  # names of its triton.jit kernels that forward launches
    purity: Purity
    extern_ops: tuple[str, ...]
    shape_general: bool
    generator: Generator
    inductor_code: str  # "" if a model wrote the candidate
    guards: tuple[str, ...] = ()  # conditions on sizes that `forward` checks, see `transforms.workloads.guards`
    distillation: tuple[Distillation, ...] = ()  # one if a model wrote the kernel
    training: bool = False  # computes gradients too, which are verified
    dtype: str = "float32"  # dtype that module, candidate and inputs are cast to; "float32": not cast
    autotuned: bool = False  # some kernels choose among several launch configurations

    @property
    def id(self) -> str:
        """The id of the module. A model's candidate appends its request, since a module may have several."""
        if not self.distillation:
            return self.probed.id
        last = self.distillation[0].turns[-1]
        return f"{self.probed.id}/{last.request[:12]}-{last.sample}"


class Tier(StrEnum):
    """A level of verification that a candidate passed."""

    COMPILED = "compiled"  # compiled ahead of time, for each target in `targets`
    INTERPRETED = "interpreted"  # ran on the CPU, in Triton's interpreter
    EXECUTED = "executed"  # ran on a GPU


class Engine(StrEnum):
    """The engine that ran the candidate's kernels, see `docs/reference/stages/verify.md`."""

    INTERPRETER = "interpreter"  # Triton's, on the CPU
    TRACE = "trace"  # an executor with a GPU replayed the recorded launches, without the candidate's Python
    GUEST = "guest"  # the candidate's own guest process, with a GPU


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
    """The evidence of a successful verification."""

    tiers: tuple[Tier, ...]
    engine: Engine
    targets: tuple[str, ...]  # "sm_80", ...
    trials: tuple[Trial, ...]
    launches: int  # kernel launches in one forward of workload 0
    launched_kernels: tuple[str, ...]
    deterministic: bool  # a repeated run gave the same bytes
    written: float  # share of output bytes that the kernels wrote; views of inputs do not count
    impostors: tuple[str, ...]  # trivial answers that were tried and failed, as they must
    mutants: int  # number of copies with one mistake each that went through the same checks
    survivors: tuple[str, ...]  # mutants that passed: undetected mistakes, or equivalent code
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
    """The smallest known call on which a candidate fails. The first three fields reproduce it."""

    workload: Workload
    seed: int
    distribution: str
    found: str  # the failure: measured value or message
    output: str  # element with the largest error, "output 0[3, 17]"; "" if no value is wrong
    expected: float  # value of the oracle; may be NaN or infinite
    actual: float  # value of the candidate


@dataclass(frozen=True, slots=True)
class Timed:
    """The run time of one contender: median and quartiles over its runs, in microseconds."""

    name: str  # "eager", "compile" or "candidate"
    median_us: float
    low_us: float
    high_us: float
    runs: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Run times of eager, `torch.compile` and the candidate, interleaved on one GPU.

    See `docs/reference/stages/time.md`.
    """

    workload: Workload
    enlarged: bool  # False: the row's first workload, which is small enough for launch overhead to dominate
    engine: Engine  # engine of the candidate; GUEST includes the time of its Python code
    contenders: tuple[Timed, ...]  # contenders that could be timed
    left_out: str  # why the other contenders could not be timed
    floor_us: float  # lower bound for any kernel on this GPU; 0: unknown
    slope_us: float  # wall time per call over many calls in the host's executor; 0 without a program
    suspect: str  # why the numbers do not fit together; "" if they do
    environment: Environment

    @property
    def over_eager(self) -> float:
        """Speedup of the candidate over eager; 0 if unknown."""
        return self._speedup("eager")

    @property
    def over_compile(self) -> float:
        """Speedup of the candidate over `torch.compile`; 0 if unknown."""
        return self._speedup("compile")

    def _speedup(self, over: str) -> float:
        medians = {timed.name: timed.median_us for timed in self.contenders}
        return medians[over] / medians["candidate"] if {over, "candidate"} <= medians.keys() else 0.0


@dataclass(frozen=True, slots=True)
class Measures:
    """The filters' measurements of a row that passed them, see `docs/guides/selecting-rows.md`. -1: not measured."""

    computing_operators: int = -1  # distinct operators, except those that only make, view or copy tensors
    characters: int = -1  # of both sides together
    non_ascii: float = -1.0  # share of the characters of `python_code`
    credentials: int = -1  # places that look like a credential
    personal: int = -1  # e-mail addresses and telephone numbers
    operators: int = -1  # calls of operators in one forward, those that only view or copy excepted
    depth: int = -1  # longest chain of them
    kernels: int = -1  # kernels that forward launches, each counted once
    tokens: int = -1  # of `triton_code`, estimated


@dataclass(frozen=True, slots=True)
class Row:
    """The columns that pairs and rejected candidates share; `docs/reference/schema.md` documents every field."""

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
    slice_of: tuple[SliceOrigin, ...]  # one if the module was cut from another one


@dataclass(frozen=True, slots=True)
class Pair(Row):
    """One row of the config `pairs`: a verified candidate."""

    verdict: Verdict
    timings: tuple[Timing, ...] = ()  # at most one, from a build with a GPU
    explanations: tuple[Explanation, ...] = ()
    measures: Measures = Measures()
    marks: tuple[str, ...] = ()  # among the pairs of its module: "fastest", "shortest", "purest", "near_lowered"
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class TrainingPair(Pair):
    """One row of the config `backward`: a pair with verified gradients. See `docs/guides/variants.md`."""


@dataclass(frozen=True, slots=True)
class Variant(Pair):
    """One row of the config `variants`: a half-precision or autotuned kernel. See `docs/guides/variants.md`."""

    dtype: str = "float32"  # dtype that `Model`, `ModelNew` and floating-point inputs are cast to; "float32": not cast
    autotuned: bool = False  # some kernels have `triton.autotune`; each of their configurations was verified


@dataclass(frozen=True, slots=True)
class Rejection(Row):
    """One row of the config `rejected`: a candidate that failed verification, and why."""

    reason: str  # code of the `Reason`
    evidence: str  # measured value
    counter_examples: tuple[CounterExample, ...]  # at most one
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Contamination:
    """One row of the config `contaminated`: a module that overlaps a benchmark, without its source text."""

    id: str
    code_sha256: str  # of the `python_code` that is not published
    source: SourceRef
    licence: Licence
    rungs: tuple[str, ...]  # rungs of the decontamination ladder that matched, sorted
    problems: tuple[str, ...]  # "benchmark/name", sorted
    evidence: str  # measurements of each rung
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION
