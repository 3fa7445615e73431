"""The records that flow from stage to stage, and the row that is published.

Each stage wraps the record of the stage before: `SourceFile -> Module -> Probed -> Lowered -> Candidate -> Verified ->
Pair`. Every record is frozen; ids are content addresses (`ids`). Nested arguments and outputs are canonical JSON with
`{"tensor": i}` at their leaves, so that the Arrow schema stays flat.

The comment at a field of a published record is the column's meaning in `docs/reference/schema.md` and in the metadata
of a dataset. A field without a comment has the meaning of the same field in `Pair`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .provenance import Distillation, Environment, Explanation, Generator, Licence, SourceRef

SCHEMA_VERSION = 10
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
    signature: str  # digest of its operators, which copies of it share; empty if it has none
    # calls in the slice, in order: `9:body.conv3` is the place in the forward, and the layer, function, method or
    # operator
    nodes: tuple[str, ...]
    modules: int  # distinct modules of the run that have a slice with the same operators


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

    name: str  # parameter of `forward` that holds the tensor
    shape: tuple[int, ...]  # sizes, outermost first; empty for a scalar
    dtype: str  # `float32`, `int64`, `bool`, ...
    low: int = 0  # least value of the tensor; a float tensor without bounds has 0 for both
    high: int = 0  # upper bound of the values, exclusive


@dataclass(frozen=True, slots=True)
class Workload:
    """One call of `forward`: the input tensors, and the arguments that hold them."""

    tensors: tuple[TensorSpec, ...]  # tensors of the call
    args: str  # canonical JSON list of the positional arguments; `{"tensor": i}` stands for the i-th tensor
    kwargs: str = "{}"  # canonical JSON object of the keyword arguments, likewise


@dataclass(frozen=True, slots=True)
class CallShape:
    """The shape that a call within `forward` gives, if no tensor that it takes has it; or that of a result."""

    call: str  # layer or function, `self.body[0].conv`, `flatten`; empty for a result of `forward`
    shape: tuple[int, ...]  # sizes, outermost first
    dtype: str  # as in `TensorSpec`
    further: tuple[tuple[int, ...], ...] = ()  # its shape in each further workload; empty if unknown

    def is_within(self, axes: int) -> bool:
        """True if no shape has more axes, and all sizes can be those of a tensor; a guest may claim others."""
        shapes = (self.shape, *self.further)
        return all(len(shape) <= axes and all(0 <= size <= 1 << 31 for size in shape) for shape in shapes)


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One entry of the module's `state_dict`, and the statistics of its initial values."""

    name: str  # key in the `state_dict`
    kind: str  # `parameter` or `buffer`
    shape: tuple[int, ...]  # sizes, outermost first
    dtype: str  # as in `TensorSpec`
    mean: float  # mean of the initial values
    std: float  # standard deviation of the initial values
    minimum: float  # smallest initial value


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
    matched_problems: tuple[str, ...] = ()  # "benchmark/name" of problems that it matches and was kept in spite of
    shapes: tuple[CallShape, ...] = ()  # the results come last

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
class ConstructorSize:
    """A size of the module's state that follows from the constructor's arguments and is a run-time argument."""

    size: str  # as in guards, `state2_0`
    word: str  # the argument that it equals; empty if it equals none


@dataclass(frozen=True, slots=True)
class Construction:
    """Other arguments of a module's constructor, with the calls and the state that they lead to."""

    init_args: str  # Python source of a list
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]


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
    constructor_sizes: tuple[ConstructorSize, ...] = ()
    constructions: tuple[Construction, ...] = ()  # for which the source is meant too

    @property
    def id(self) -> str:
        return self.probed.id


class Purity(StrEnum):
    """Label: is the result computed by Triton alone? The verifier checks it, see `docs/explanation/trust.md`."""

    PURE = "pure"  # Triton alone computes the result
    MIXED = "mixed"  # some operators, which `extern_ops` names, run in aten or a vendor library


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
    constructions: tuple[Construction, ...] = ()  # for which the candidate is meant too

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
    TRACE = "trace"  # an executor with a GPU replayed the recorded launches, without the candidate's Python code
    GUEST = "guest"  # the candidate's own guest process, with a GPU


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of the candidate with the oracle.

    Errors and tolerance are relative to the scale of the oracle, so they have no unit. `error` is at most `tolerance`.
    """

    # index into `workloads`; higher indices are the resized calls derived from them (`transforms/workloads/resize.py`)
    workload: int
    seed: int  # seed of the inputs and parameters
    distribution: str  # distribution of the floating-point values
    error: float  # error of the candidate, against the reference in float64
    honest_error: float  # error of eager PyTorch in the row's dtype, against the reference in float64
    tolerance: float  # error that was allowed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evidence of a successful verification."""

    tiers: tuple[Tier, ...]  # levels of verification that the candidate passed
    engine: Engine  # engine that ran the kernels
    targets: tuple[str, ...]  # GPU architectures that every kernel compiles for: `sm_80`, `sm_90`, ...
    trials: tuple[Trial, ...]  # every comparison with the oracle
    launches: int  # kernel launches in one `forward` of workload 0
    launched_kernels: tuple[str, ...]  # names of the kernels that were launched
    deterministic: bool  # true if a repeated run gave the same bytes
    # share of output bytes that the kernels wrote, measured by disabling the launches; views of inputs and of state do
    # not count; 1 in every `pure` row
    written: float
    impostors: tuple[str, ...]  # trivial answers that were tried in place of the kernel and failed, as they must
    environment: Environment  # machine and software of the verification

    @property
    def worst_ratio(self) -> float:
        """Largest error as a share of the error that was allowed."""
        return max((t.error / t.tolerance for t in self.trials), default=0.0)


@dataclass(frozen=True, slots=True)
class Verified:
    candidate: Candidate
    verdict: Verdict
    explanations: tuple[Explanation, ...] = ()
    constructor_general: bool = False  # right for all of the candidate's `constructions`, of which there are some

    @property
    def id(self) -> str:
        return self.candidate.id


@dataclass(frozen=True, slots=True)
class CounterExample:
    """The smallest known call on which a candidate fails.

    `workload`, `seed` and `distribution` reproduce its inputs and parameters to the bit, for `kernelquarry replay`.
    """

    workload: Workload  # the call, often smaller than any in `workloads`
    seed: int  # seed of the inputs and parameters
    distribution: str  # distribution of the floating-point values
    found: str  # the failure on this call: measured value or message
    # element with the largest error as a share of the tolerance: `output 0[3, 17]`, or `input 1[4]` of an input that
    # the call changes; empty if no value is wrong
    output: str
    expected: float  # oracle's value of the element, possibly NaN or infinite; 0 if `output` is empty
    actual: float  # candidate's value of the element


@dataclass(frozen=True, slots=True)
class Timed:
    """The run time of one contender: median and quartiles over its runs, in microseconds."""

    name: str  # `eager`: the reference; `compile`: the reference under `torch.compile`; `candidate`: `triton_code`
    median_us: float  # median of the runs, microseconds of the GPU's clock
    low_us: float  # lower quartile
    high_us: float  # upper quartile
    runs: int  # number of runs


@dataclass(frozen=True, slots=True)
class Timing:
    """Run times of eager, `torch.compile` and the candidate for one call, interleaved on one GPU.

    See `docs/reference/stages/time.md`. Leave `suspect` timings out of comparisons.
    """

    workload: Workload  # the timed call
    # true if the call is of realistic size; false if it is the first of `workloads`, because the row's sizes are fixed:
    # launch overhead dominates its time
    enlarged: bool
    engine: Engine  # engine of the candidate; `guest` includes the time of its Python code
    contenders: tuple[Timed, ...]  # contenders that could be timed, in the order eager, compile, candidate
    left_out: str  # why the other contenders could not be timed; empty if all were
    floor_us: float  # lower bound in microseconds for any kernel on this GPU; 0 if the GPU's limits are unknown
    # microseconds per call over many calls in a row, by the host's clock; 0 if the candidate has no program to replay
    slope_us: float
    suspect: str  # why the numbers do not fit together; empty if they do
    environment: Environment  # machine and software of the timing

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
    """The filters' measurements of a row that passed them, and others that tell how hard the row is.

    A reader can apply stricter limits than the build did, see `docs/guides/selecting-rows.md`. -1: not measured, as in
    rows of earlier schema versions.
    """

    computing_operators: int = -1  # distinct operators, except those that only make, view or copy tensors
    characters: int = -1  # length of `python_code` and `triton_code` together
    non_ascii: float = -1.0  # share of the characters of `python_code` that are not ASCII
    credentials: int = -1  # places that look like a credential: 0 in every row that passed
    personal: int = -1  # e-mail addresses and telephone numbers: 0 in every row that passed
    # calls of operators in one forward; views, copies and a product's bias do not count; -1 if the graph is too large
    operators: int = -1
    depth: int = -1  # longest chain of them, each taking the result of the one before; -1 if the graph is too large
    kernels: int = -1  # number of `kernels`
    inside: int = -1  # 1 if `triton_code` is inside of the language, as an answer to `python_code`, else 0
    tokens: int = -1  # tokens of `triton_code`, estimated: within 3 % of SmolLM2's for nine kernels of ten


@dataclass(frozen=True, slots=True)
class Row:
    """The columns that pairs and rejected candidates share."""

    # `pair_` and 16 hex digits of a SHA-256 over `python_code` and `triton_code`: the same pair has the same id
    # everywhere
    id: str
    module_name: str  # original name of the class; for a slice, its operators
    entry_point: str  # name of the class to run in `python_code`: `Model`
    # one importable source with the class `Model`, `get_inputs()` and `get_init_inputs()`, each of which returns a list
    # of positional arguments
    python_code: str
    # one source with the class `ModelNew`: same constructor arguments, same `state_dict`, same `forward`; it imports
    # torch, triton and what its constructor computes with (the standard library, numpy)
    triton_code: str
    # the compiler's raw source, before tidy; in the config `backward`, that of the gradients follows; of kernels of the
    # library, the text before it was narrowed; empty if a model wrote the kernel
    inductor_code: str
    generator: Generator  # author of the kernel
    source: SourceRef  # file that defines the module
    licence: Licence  # licence of that file
    imported_files: tuple[str, ...]  # other files of the package that definitions in `python_code` were taken from
    init_args: str  # Python source of the list that `get_init_inputs()` returns
    # calls of `forward` on which the pair was verified, with distinct shapes; the first is what `get_inputs()` draws
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]  # parameters and buffers of the module
    operators: tuple[str, ...]  # aten operators that the reference ran, without their overloads, sorted
    kernels: tuple[str, ...]  # names of the `triton.jit` kernels that `ModelNew` launches
    purity: Purity  # share of Triton in the result
    extern_ops: tuple[str, ...]  # operators of a mixed pair that Triton does not run
    shape_general: bool  # true if sizes that differ between the workloads are run-time arguments of the kernels
    # conditions on the sizes, mostly none: `input0_2 <= 31` says that axis 2 of the first tensor is at most 31;
    # `forward` raises `ValueError` for other sizes
    guards: tuple[str, ...]
    # how a model wrote the kernel, and the terms of its use: at most one; none if a compiler wrote the kernel
    distillation: tuple[Distillation, ...]
    slice_of: tuple[SliceOrigin, ...]  # module that this one was cut from: at most one; none if it is a whole module
    # shapes of up to 24 calls, then of the results, in each workload, for prompts; empty if unknown
    shapes: tuple[CallShape, ...]


@dataclass(frozen=True, slots=True)
class Pair(Row):
    """One row of the config `pairs`: a verified candidate."""

    verdict: Verdict  # evidence of the verification
    timings: tuple[Timing, ...] = ()  # run times: at most one, from a build with a GPU; no row is dropped for them
    explanations: tuple[Explanation, ...] = ()  # explanations by models that the code supports
    measures: Measures = Measures()  # measurements of the filters
    # true if sizes of weights that follow from the constructor's arguments are run-time arguments of the kernels, and
    # the pair was verified for twice and for three times these arguments too; false if a model wrote the kernel
    constructor_general: bool = False
    # problems of benchmarks that the module matches, as `benchmark/name`, sorted: single operators in a build that
    # keeps them for training, else none
    matched_problems: tuple[str, ...] = ()
    # among the pairs of one module that models added to: `fastest`, `shortest`, `purest`; `near_lowered` if the kernel
    # is nearly the compiler's
    marks: tuple[str, ...] = ()
    # id of the cluster of similar modules, which has one split: `docs/reference/stages/deduplicate.md`
    cluster: str = ""
    split: str = ""  # `train`, `validation` or `test`; follows from `cluster` alone
    schema_version: int = SCHEMA_VERSION  # version of the row's schema


@dataclass(frozen=True, slots=True)
class TrainingPair(Pair):
    """One row of the config `backward`: a pair with verified gradients, see `docs/guides/variants.md`.

    A trial compares the outputs, then the gradients of the inputs and of the parameters. There are no timings,
    explanations and marks.
    """


@dataclass(frozen=True, slots=True)
class Variant(Pair):
    """One row of the config `variants`: kernels in half precision, autotuned, or one for each operator.

    The trials of an autotuned kernel hold the errors of its worst configuration. In half precision, `get_inputs()`
    draws tensors of the dtype, and `workloads` and `state` have it. There are no timings, explanations and marks.
    """

    dtype: str = "float32"  # dtype that `Model`, `ModelNew` and floating-point inputs are cast to; `float32`: not cast
    autotuned: bool = False  # true if a kernel has `triton.autotune`; each of its configurations was verified


@dataclass(frozen=True, slots=True)
class Rejection(Row):
    """One row of the config `rejected`: a candidate that failed verification, and why.

    The columns before `reason` are unverified claims. Ids start with `rej_`.
    """

    reason: str  # code of the `Reason`
    evidence: str  # measured value, and its place
    # smallest known call on which the candidate fails: at most one; none if no single call shows the failure
    counter_examples: tuple[CounterExample, ...]
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Contamination:
    """One row of the config `contaminated`: a module that overlaps a benchmark, without its source text.

    Others can look for the module in their data. It must not be trained on, whatever its split. See
    `docs/guides/decontamination.md`.
    """

    id: str  # `con_` and the 16 hex digits of the module's id: the same content has the same id everywhere
    code_sha256: str  # SHA-256 of the module's unpublished `python_code`
    source: SourceRef
    licence: Licence
    rungs: tuple[str, ...]  # rungs of the decontamination ladder that matched, sorted
    problems: tuple[str, ...]  # problems that the module overlaps, as `benchmark/name`, sorted
    evidence: str  # each rung, problem and measured value
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION
