"""Check kernels against modules, one or thousands, in guests that stay warm."""

from __future__ import annotations

import ast
import asyncio
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from typing import Any

from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxError, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.describe_problem import DESCRIBE_PROBLEM, SizeLimits
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.closing import Closing
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome, printable
from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair, Purity, Row, Timing, Workload
from kernelquarry.transforms.time import time as time_pair
from kernelquarry.transforms.verify import Task, VerifySettings
from kernelquarry.transforms.verify.answer import (
    ON_GIVEN,
    Judgement,
    judge_code,
    judge_construction,
    judge_given,
    judge_source,
    judge_values,
)
from kernelquarry.transforms.verify.source_constants import extents, integers

from .problem import Problem, UnfitProblem, read_problem, row_of
from .stages import STAGES, Progress, later_stage
from .verdict import CheckVerdict, Status, TrialErrors, shapes_of
from .versions import check_versions

INPUTS = ("derived", "as-given")
# Problems at larger sizes get smaller ones. The interpreter takes about a second for a kernel on the first; the second
# is for kernels that take too long on the first.
INTERPRETED = (SizeLimits(5_000_000, 1 << 17, 50_000_000), SizeLimits(200_000, 1 << 12, 1_000_000))
_EXECUTED = (SizeLimits(1 << 24, 1 << 20, 2 << 30),)
_ONE_CALL = 4  # times these limits for a single call
MORE_CALLS = 2
_MODULE = Limits(wall_s=60.0, cpu_s=30, memory_mb=8 << 10)  # of the guest that reads a module
_SETTINGS = VerifySettings(limits=Limits(wall_s=120.0, cpu_s=20))  # of each guest that runs a kernel
# Kinds of guests, in the order in which a check needs them.
_KINDS = ("reference", "interpret", "compile")
_GPU_KINDS = ("reference", "trace", "compile", "perturbed")
_PROBLEMS = 1024  # that a checker remembers

# Reasons that say that the module, not the kernel, fails.
_OF_MODULE = frozenset({Reason.ORACLE_FAILED, Reason.IMPOSTOR_PASSES})
_OF_GUEST = frozenset({Reason.TIMED_OUT, Reason.OUT_OF_MEMORY, Reason.CRASHED})
_OF_VALUES = frozenset({Reason.WRONG_VALUES, Reason.NOT_DETERMINISTIC, Reason.UNVERIFIED_PATH})


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How kernels are checked.

    Raises: UserError: a value is out of range.
    """

    inputs: str = "derived"  # "as-given": only the sizes of the module's own `get_inputs`
    mixed: bool = False  # accept kernels that leave some of the module's own operators to PyTorch
    timed: bool = False  # time kernels that are verified, on a GPU
    timeout_s: float | None = None  # wall time of one check, once its module was read; None: the limits of its guests

    def __post_init__(self) -> None:
        if self.inputs not in INPUTS:
            raise UserError(f"inputs {self.inputs!r}: choose {' or '.join(INPUTS)}")
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise UserError(f"a timeout of {self.timeout_s} s: give a number above 0")


@dataclass(frozen=True, slots=True)
class _Pair:
    """The sources of one check."""

    module: str
    kernel: str

    @property
    def id(self) -> str:
        return "check"


class _OutOfTime(Exception):
    """A check has used up its time."""


class _Watch:
    """Follows the jobs of one check: its stage, and its time."""

    def __init__(self, settings: CheckSettings, progress: Progress | None) -> None:
        self._progress = progress
        self._stage = ""
        self._timeout_s = settings.timeout_s
        self._ends: float | None = None
        self.last_job = ""

    def start_clock(self) -> None:
        """Start the time limit, unless it has started."""
        if self._timeout_s is not None and self._ends is None:
            self._ends = time.monotonic() + self._timeout_s

    @property
    def is_late(self) -> bool:
        return self._ends is not None and time.monotonic() >= self._ends

    def enter(self, job: str) -> None:
        """Report the stage of a job."""
        self.last_job = job
        stage = later_stage(self._stage or STAGES[0], job)
        if stage != self._stage:
            self._stage = stage
            if self._progress is not None:
                self._progress(stage)

    def before(self, job: Job[Any, Any]) -> Job[Any, Any]:
        """Report the job's stage, and cut its time. Raises: _OutOfTime."""
        self.enter(job.kind.name)
        if self._ends is None:
            return job
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise _OutOfTime
        return replace(job, limits=replace(job.limits, wall_s=min(job.limits.wall_s, left_s)))


class Checker(Closing):
    """A thread-safe context manager that checks kernels in guests that stay warm.

    A kernel that hangs, crashes or needs too much memory affects no other. No kernel and no module raises: each gets a
    `CheckVerdict`.
    """

    def __init__(
        self,
        *,
        inputs: str = "derived",
        mixed: bool = False,
        timed: bool = False,
        timeout_s: float | None = None,
        workers: int | None = None,
        gpus: str = "all",
        require: Sequence[str] = (),
        sandbox: Sandbox | None = None,
    ) -> None:
        """Start the guests' warm processes in the background.

        Args:
            inputs: "derived": the module's own sizes where they can be afforded, and others; "as-given": its own.
            mixed: accept kernels that leave some of the module's own operators to PyTorch.
            timed: time kernels that are verified; needs a GPU.
            timeout_s: wall time of one check, once its module was read; None: no limit but those of its guests.
            workers: guests at once; None: one more than there are cores.
            gpus: GPUs that execute kernels: "all", "none", or numbers such as "0,1". Without one, kernels are
                interpreted, and compiled.
            require: layers of the sandbox without which no guest runs.
            sandbox: in which guests run, in place of one of its own; `gpus` and `require` are those of this sandbox.

        Raises:
            UserError: an argument is invalid, or the installed torch or triton does not fit.
        """
        check_versions()
        self._settings = CheckSettings(inputs, mixed, timed, timeout_s)
        self._workers = workers or (os.cpu_count() or 1) + 1
        self._owns_sandbox = sandbox is None
        if sandbox is None:
            ordinals = choose_gpus(gpus)
            if timed and not ordinals:
                raise UserError(
                    "timing needs a GPU, and there is none: leave out --time, or run on a machine with a GPU"
                )
            sandbox = Sandbox(SandboxSettings(workers=self._workers, gpus=ordinals, require=tuple(require)))
        self._sandbox = sandbox
        self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="check")
        self._problems: OrderedDict[tuple[str, SizeLimits, tuple[int, ...], int, int], Future[Problem]] = OrderedDict()
        self._lock = threading.Lock()
        self._starting = threading.Thread(target=self._start_guests, daemon=True)
        self._starting.start()

    def _start_guests(self) -> None:
        with suppress(SandboxError):  # the first job that needs the guests reports the error
            self._sandbox.start(_GPU_KINDS if self._sandbox.gpus else _KINDS)

    def check(self, module: str, kernel: str, progress: Progress | None = None) -> CheckVerdict:
        """The verdict on a kernel; both are sources.

        Args:
            progress: called with the name of each stage when it starts, in the thread of the check.
        """
        started = time.monotonic()
        outcome: Outcome[CheckVerdict] = run_guarded(self._guarded, _Pair(module, kernel), progress)
        if isinstance(outcome, Kept):
            verdict = outcome.record
        else:
            assert isinstance(outcome, Errored)  # a check drops nothing
            bug = f"the verifier failed, which is a bug: {outcome.error}: {outcome.message}"
            verdict = CheckVerdict(Status.UNJUDGED, evidence=printable(bug))
        return replace(verdict, wall_s=time.monotonic() - started)

    def _guarded(self, pair: _Pair, progress: Progress | None) -> Outcome[CheckVerdict]:
        try:
            return Kept(self._check(pair.module, pair.kernel, _Watch(self._settings, progress)))
        except UnfitProblem as unfit:
            return Kept(CheckVerdict(Status.UNJUDGED, evidence=str(unfit)))
        except _OutOfTime:
            late = f"no verdict within {self._settings.timeout_s:g} s: raise the timeout"
            return Kept(CheckVerdict(Status.UNJUDGED, evidence=late))
        except SandboxError as error:
            return Kept(CheckVerdict(Status.UNJUDGED, evidence=f"no guest could be started: {error}"))

    async def check_async(self, module: str, kernel: str) -> CheckVerdict:
        """The verdict of `check`, without blocking the event loop."""
        return await asyncio.wrap_future(self.submit(module, kernel))

    def submit(self, module: str, kernel: str, progress: Progress | None = None) -> Future[CheckVerdict]:
        """Start a check; as many run at once as there are workers."""
        return self._threads.submit(self.check, module, kernel, progress)

    def check_all(self, pairs: Iterable[tuple[str, str]]) -> list[CheckVerdict]:
        """The verdicts on (module, kernel) pairs, in their order."""
        return [future.result() for future in [self.submit(module, kernel) for module, kernel in pairs]]

    async def check_all_async(self, pairs: Iterable[tuple[str, str]]) -> list[CheckVerdict]:
        """The verdicts of `check_all`, without blocking the event loop."""
        return await asyncio.gather(*(self.check_async(module, kernel) for module, kernel in pairs))

    def close(self) -> None:
        """End all guests. Checks that have not started are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._owns_sandbox:
            self._sandbox.close()
        self._starting.join()

    def _check(self, module: str, kernel: str, watch: _Watch) -> CheckVerdict:
        """The verdict, at smaller sizes if the kernel takes too long. Raises: UnfitProblem, _OutOfTime."""
        if (unrun := judge_source(kernel, module=module)) is not None:
            return _unrun(unrun)
        sandbox = self._sandbox.view(watch.before)
        as_given = self._settings.inputs == "as-given"
        tries = (INTERPRETED if self._sandbox.gpus is None else _EXECUTED)[: 1 if as_given else None]
        for sizes in tries:
            watch.enter(DESCRIBE_PROBLEM.name)
            problem = self._problem(module, sizes)
            watch.start_clock()
            task = _task(problem, self._settings.mixed)
            judgement = judge_code(kernel, task, sandbox, _SETTINGS)
            if judgement.reason is not Reason.TIMED_OUT or watch.is_late:
                break
        if judgement.reason in _OF_GUEST and watch.is_late:
            raise _OutOfTime
        if judgement.reason in _OF_GUEST and watch.last_job == "reference":
            raise UnfitProblem(f"the module does not run to the end: {judgement.evidence}")
        kept: Problem | None = None
        if judgement.reason in _MISFITS and (number := _number_of_given(kernel, problem)):
            kept = self._with_given_constructor(module, problem, sizes)
            if kept is None:
                found = f"constructed with {problem.init_args}: {judgement.evidence}"
                too_large = f"the kernel has {number} of {problem.given_init_args}, which is too large to check here"
                return CheckVerdict(Status.UNJUDGED, evidence=f"{found}; {too_large}")
            problem, task = kept, _task(kept, self._settings.mixed)
            judgement = judge_code(kernel, task, sandbox, _SETTINGS)
        refuses = judgement.reason in _REFUSALS and not as_given
        narrow = self._at_kept_sizes(module, kernel, problem, sizes, sandbox) if refuses else None
        if narrow is not None:
            problem, task, judgement, found = narrow
        if judgement.passes and problem.values:
            judgement = judge_values(judgement, task, problem.values, problem.strided, sandbox, _SETTINGS)
        above = _numbers_between(kernel, problem) if judgement.passes else ()
        larger = self._at_larger_sizes(module, sizes, above) if above else None
        if larger is not None:
            other = _task(larger, self._settings.mixed)
            judgement = judge_construction(judgement, other, sandbox, _SETTINGS)
        if problem.given is not None and not _was_tried(problem.given, problem):
            given = replace(task, init_args=problem.given_init_args, workloads=(problem.given,))
            if judgement.passes:
                judgement = judge_given(judgement, task, given, sandbox, _SETTINGS)
            elif judgement.reason is Reason.UNVERIFIED_PATH:
                judgement = _judge_large(judgement, task, given, sandbox)
        if kept is not None and judgement.passes and judgement.note:
            evidence = f"right on small calls of the constructor as given, which are too few: {judgement.note}"
            return CheckVerdict(Status.UNJUDGED, evidence=evidence)
        if narrow is not None:
            judgement = replace(judgement, note="; ".join(filter(None, (found, judgement.note))))
        verdict = _verdict(judgement, task, problem, larger)
        if verdict and self._settings.timed:
            row = row_of("check", problem.code, problem.init_args, problem.workloads[:1], problem.state)
            if problem.given is not None:  # the sizes of the module as given
                row = row_of("check", module, problem.given_init_args, (problem.given,), problem.state)
            verdict = replace(verdict, timing=time_answer(judgement, row, sandbox, general=False))
        return verdict

    def _at_kept_sizes(
        self, module: str, kernel: str, problem: Problem, sizes: SizeLimits, sandbox: Sandbox
    ) -> tuple[Problem, Task, Judgement, str] | None:
        """The judgement on calls with fewer sizes, and a note on these; None if the kernel refuses such calls, too.

        The calls are those of the smallest unit that the kernel accepts, if the last axes as given are not enough.
        """
        found = None
        for unit in _UNITS:
            narrow = _or_none(partial(self._problem, module, sizes, unit=unit))
            if narrow is not None and narrow.workloads != problem.workloads:
                task = _task(narrow, self._settings.mixed)
                judgement = judge_code(kernel, task, sandbox, _SETTINGS)
                if judgement.reason not in _REFUSALS:
                    note = f"{_KEPT[unit > 0].format(unit=unit)}, since the kernel does not run at others"
                    found = narrow, task, judgement, note
                elif unit:
                    break
            if found and not unit:
                break
        return found

    def _at_larger_sizes(self, module: str, sizes: SizeLimits, above: tuple[int, ...]) -> Problem | None:
        """One call of the module with a constructor that has sizes above these numbers; None if it is too large."""
        one_call = SizeLimits(*(_ONE_CALL * limit for limit in astuple(sizes)))
        return _or_none(partial(self._problem, module, one_call, above, 0))

    def _with_given_constructor(self, module: str, problem: Problem, sizes: SizeLimits) -> Problem | None:
        """The module with its constructor as given, and smaller calls; None if it is too large."""
        above = tuple(number - 1 for number in _integers(problem.given_init_args))
        kept = _or_none(partial(self._problem, module, sizes, above))
        return kept if kept is not None and kept.init_args == problem.given_init_args else None

    def _problem(
        self,
        module: str,
        sizes: SizeLimits,
        above: tuple[int, ...] = (),
        more_calls: int = MORE_CALLS,
        unit: int = 1,
    ) -> Problem:
        """The problem of a module, read once; for `above` see `ProblemRequest`. Raises: UnfitProblem, SandboxError."""
        key = sha256(module.encode(errors="surrogatepass")), sizes, above, more_calls, unit
        with self._lock:
            known = self._problems.get(key)
            if known is None:
                ours = self._problems[key] = Future[Problem]()
                while len(self._problems) > _PROBLEMS:
                    self._problems.popitem(last=False)
        if known is not None:
            return known.result()
        resize = self._settings.inputs == "derived"
        try:
            more = more_calls if resize else 0
            problem = read_problem(module, self._sandbox, _MODULE, sizes, resize, more, above, unit)
        except BaseException as error:
            if not isinstance(error, UnfitProblem):
                with self._lock:
                    self._problems.pop(key, None)  # the next check tries again
            ours.set_exception(error)
            raise
        ours.set_result(problem)
        return problem


def check(module: str, kernel: str, progress: Progress | None = None, **settings: Any) -> CheckVerdict:
    """The verdict on one kernel; both are sources. For the settings see `Checker`, which is faster for several."""
    with Checker(**settings) as checker:
        return checker.check(module, kernel, progress)


async def check_async(module: str, kernel: str, **settings: Any) -> CheckVerdict:
    """The verdict of `check`, without blocking the event loop."""
    return await asyncio.to_thread(check, module, kernel, **settings)


def _or_none(read: Callable[[], Problem]) -> Problem | None:
    """A problem; None if it cannot be used."""
    try:
        return read()
    except UnfitProblem:
        return None


def _was_tried(given: Workload, problem: Problem) -> bool:
    """True if the file's own call and constructor are among those that are checked."""
    return problem.given_init_args == problem.init_args and shapes_of(given) in map(shapes_of, problem.workloads)


def _numbers_between(kernel: str, problem: Problem) -> tuple[int, ...]:
    """Numbers and extents of the kernel, and twice these, between a size of the constructor and that in the source.

    A size above two blocks needs three: a kernel that repeats its first two is wrong there alone.
    """
    pairs = list(zip(_integers(problem.init_args), _integers(problem.given_init_args), strict=False))
    numbers = [times * n for n in (*integers(kernel), *extents(kernel)) for times in (1, 2)]
    return tuple(n for n in numbers if any(tried <= n < given for tried, given in pairs))


def _number_of_given(kernel: str, problem: Problem) -> int:
    """The largest number of the kernel that the constructor has as given, and not in the trials; 0 if it has none."""
    pairs = zip(_integers(problem.init_args), _integers(problem.given_init_args), strict=False)
    return max({given for tried, given in pairs if tried < given} & {*integers(kernel)}, default=0)


def _integers(init_args: str) -> list[int]:
    """The integers in the source of a constructor's arguments, in order."""
    constants = [node.value for node in ast.walk(parse(init_args)) if isinstance(node, ast.Constant)]
    return [value for value in constants if type(value) is int]


def _task(problem: Problem, mixed: bool) -> Task:
    """The task of the problem, without a kernel."""
    return Task(
        id="check",
        python_code=problem.code,
        triton_code="",
        init_args=problem.init_args,
        workloads=problem.workloads,
        state=problem.state,
        kernels=(),
        purity=Purity.MIXED if mixed else Purity.PURE,
        extern_ops=problem.operators if mixed else (),
        shape_general=len(problem.workloads) > 1,
        by_model=True,
        given=problem.given,
    )


def _verdict(judgement: Judgement, task: Task, problem: Problem, larger: Problem | None) -> CheckVerdict:
    sizes = tuple(dict.fromkeys(map(shapes_of, problem.workloads)))
    given = shapes_of(problem.given) if problem.given else ()
    notes = [f"{problem.structure} as given, and in one call alone"] if problem.structure else []
    if given not in sizes:  # also if it is unknown, since it could not be made
        notes.append("get_inputs() is too large to check here: smaller sizes were checked")
    if problem.given_init_args not in ("", problem.init_args):
        tried = " and ".join([problem.init_args, *([larger.init_args] if larger else [])])
        notes.append(f"the constructor got {tried} in place of {problem.given_init_args}")
    if judgement.note:
        notes.append(judgement.note)
    note = "; ".join(notes) if judgement.ran or judgement.verdict is not None else ""
    verdict = CheckVerdict(Status.VERIFIED, sizes=sizes, given=given, note=note)
    if judgement.verdict is None:
        return _rejection(judgement, problem, verdict)
    found, calls = judgement.verdict, replace(task, triton_code=judgement.code).calls
    trials = tuple(
        TrialErrors(
            shapes=shapes_of(calls[trial.workload]),
            seed=trial.seed,
            distribution=trial.distribution,
            error=trial.error,
            honest_error=trial.honest_error,
            tolerance=trial.tolerance,
        )
        for trial in found.trials
    )
    return replace(
        verdict,
        sizes=tuple(dict.fromkeys([*sizes, *(trial.shapes for trial in trials)])),
        trials=trials,
        narrowed=judgement.narrowed,
        purity=judgement.purity.value,
        torch_operators=task.extern_ops if judgement.purity is Purity.MIXED else (),
        engine=found.engine.value,
        targets=found.targets,
        launches=found.launches,
        kernels=found.launched_kernels,
        deterministic=found.deterministic,
    )


def _judge_large(judgement: Judgement, task: Task, given: Task, sandbox: Sandbox) -> Judgement:
    """The judgement on a kernel that goes another way for large inputs: that on the file's own call, if it goes so."""
    settings = replace(_SETTINGS, narrows=True)
    other = judge_code(judgement.code, task, sandbox, settings)
    found = judge_given(other, task, given, sandbox, settings) if other.passes else judgement
    return judgement if found.passes and not found.forced else found


def _unrun(judgement: Judgement) -> CheckVerdict:
    """The verdict on a kernel that its text decides."""
    reason = Reason.NO_CODE if judgement.reason is None else judgement.reason
    evidence = judgement.evidence or reason.why
    if not judgement.is_scored:
        return CheckVerdict(Status.UNJUDGED, evidence=evidence)
    return CheckVerdict(Status.REJECTED, reason=reason.value, evidence=evidence)


def _rejection(judgement: Judgement, problem: Problem, verdict: CheckVerdict) -> CheckVerdict:
    if not judgement.ran:
        return _unrun(judgement)
    reason, evidence = judgement.reason, judgement.evidence
    if not judgement.is_scored:
        return replace(verdict, status=Status.UNJUDGED, evidence=evidence, sizes=())
    if reason in _OF_MODULE:
        return replace(verdict, status=Status.UNJUDGED, evidence=f"the module decides nothing: {evidence}")
    if reason in _OF_VALUES and problem.structure and not evidence.startswith(ON_GIVEN):
        cause = f"{problem.structure}, which the kernel may rely on and the trials lack ({evidence})"
        return replace(verdict, status=Status.UNJUDGED, evidence=cause)
    example = next(iter(judgement.counter_examples), None)
    own_sizes = verdict.given in verdict.sizes
    if own_sizes and reason in _AT_A_SIZE and len(problem.workloads) > 1 and not evidence.startswith(_OWN_SIZES):
        verdict = replace(verdict, note="; ".join(filter(None, (verdict.note, _OTHER_SIZES))))
    if reason is Reason.STATE_DIFFERS and not own_sizes:
        cause = f"{evidence} at sizes that can be checked here; at those of get_inputs() it may be the same"
        return replace(verdict, status=Status.UNJUDGED, evidence=cause)
    assert reason is not None  # an error is no judgement
    return replace(
        verdict,
        status=Status.REJECTED,
        reason=reason.value,
        evidence=evidence or reason.why,
        counter_example=example,
    )


# Of a kernel that is for other sizes than it was tried on.
_MISFITS = frozenset({Reason.DOES_NOT_RUN, Reason.DOES_NOT_COMPILE, Reason.WRONG_CONTRACT})
_REFUSALS = frozenset({Reason.DOES_NOT_RUN, Reason.DOES_NOT_COMPILE})
_UNITS = (0, 64, 16, 4)  # of sizes, for a kernel that refuses others; 0: the last axes keep their sizes
_KEPT = "the last axes of the inputs kept their sizes", "sizes changed by multiples of {unit} alone"
_AT_A_SIZE = frozenset(
    {Reason.DOES_NOT_RUN, Reason.DOES_NOT_COMPILE, Reason.WRONG_CONTRACT, Reason.WRONG_VALUES, Reason.UNVERIFIED_PATH}
)
_OWN_SIZES = "workload 0, "  # start of the evidence of a trial at the first sizes
_OTHER_SIZES = "sizes other than those of get_inputs() were checked too: --inputs as-given leaves them out"


def time_answer(judgement: Judgement, row: Row, sandbox: Sandbox, general: bool = True) -> Timing | None:
    """The timing of an answer that passes, on a larger call if `general`; None if it fails or without a GPU."""
    if judgement.verdict is None:
        return None
    shared: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(Row)}
    pair = Pair(**shared, verdict=judgement.verdict)
    timed = time_pair(replace(pair, triton_code=judgement.code, shape_general=general, guards=()), sandbox)
    return timed.record.timings[0] if isinstance(timed, Kept) and timed.record.timings else None
