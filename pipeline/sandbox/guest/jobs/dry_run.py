"""Guest job: the path of a candidate's forward at other sizes, and after many calls.

No kernel runs or is compiled, so large sizes cost little: memory that nobody writes to is not allocated. The seed, the
number of threads, the name of the module, gradients and the layout of inputs differ from those of the other guests, so
that a candidate that looks at them takes another path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _dispatch_has_kernel_for_dispatch_key
from torch.utils._pytree import tree_leaves
from triton.runtime.jit import JITFunction

from kernelquarry.pipeline.sandbox.jobs.dry_run import DryCall, DryPath, DryRunReply, DryRunRequest

from ..candidate import fake_cuda, op_census
from ..candidate.candidate_call import GRADIENTS, INFERENCE, NO_GRAD, Recording, arguments
from ..candidate.input_layouts import offset, zeros
from ..candidate.launch_log import Launched, bind, entries, session, sizes
from ..candidate.module_setup import construct, instance
from ..compiler import autotune
from ..lib.dispatch_mode import DispatchMode
from ..lib.errors import describe
from ..lib.load_source import drawn_name, path_of
from ..tamper import global_state, reachable_state
from ..tamper.caught_exceptions import ExceptionWatch

_THREADS, _SEED = 2, 4_294_967_291  # 1 and 0 in the other guests
_MESSAGE = 200  # characters
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_TALLEST = 65_535  # programs along a grid's second and third axis
_RECORDINGS = (NO_GRAD, GRADIENTS, INFERENCE)


def warm() -> None:
    op_census.warm()
    autotune.install(_unseen)


def run(request: DryRunRequest, tensors: dict[str, Tensor]) -> tuple[DryRunReply, dict[str, Tensor]]:
    """The paths of all calls, and of `repeats` more calls of the first.

    The candidate makes twice: all calls, the calls of other sizes, calls of another instance, and half of the repeats.
    The path of the first call is from before that.
    """
    torch.set_num_threads(_THREADS)
    JITFunction.run = _log_launch
    with fake_cuda.pretend():
        return _run(request), {}


def _run(request: DryRunRequest) -> DryRunReply:
    name, _PathLog.seed, _PathLog.cut_off = drawn_name(request.seed), request.seed, request.cut_off
    watch, shared, settings = ExceptionWatch(path_of(name)), global_state.Shared(), global_state.settings()
    with watch:
        module = construct(request.module, name)
    torch.manual_seed(_SEED)
    left = global_state.changed(settings | {"seed": _SEED})
    nn.Module.to(module, fake_cuda.DEVICE)
    first, half = request.calls[0], request.repeats // 2
    again, kept, names = list[tuple[int, DryPath]](), list[dict[str, str]](), vars(sys.modules[name])
    early = [_watched(watch, module, first) for _ in range(2)][1]  # no other size was seen
    for _ in range(2):  # the same twice, so that nothing that is counted stays unseen
        # A tuner resets what it timed in the first call of a size, so the paths of the second time count.
        paths = [_watched_or_otherwise(watch, module, call) for call in request.calls]
        for call in (*request.sizes, first):  # the last leaves what the module keeps as the first left it
            _path(module, call)
        other = nn.Module.to(instance(names, request.module), fake_cuda.DEVICE)
        for call in (request.calls[-1], first):  # the second makes what only that size needs
            _path(other, call)
        again.append((0, _path(other, first)))
        before = global_state.settings()
        again += _repeat(module, first, half)
        left = left or global_state.changed(before)
        kept.append(reachable_state.kept(module, names, contents=False))
        _PathLog.again = True
    later = _differing([(0, paths[0]), *again], early, request.mixed)
    return DryRunReply(
        calls=(early, *paths[1:]),
        later=tuple(later[:1]),
        handled=watch.first,
        keeps=reachable_state.difference(*kept),
        left=left or _PathLog.left or shared.changed() or global_state.redefined(module),
    )


def _differing(again: Iterable[tuple[int, DryPath]], early: DryPath, mixed: bool) -> list[DryPath]:
    """The calls, each with the number of its recording, that take another path than the early one.

    PyTorch's layers may run other operators where nothing is recorded: the calls of a mixed candidate must run the same
    operators in each recording, and the same launches in all.
    """
    known: dict[int, DryPath] = {0: early}
    found = []
    for recording, call in again:
        first = known.setdefault(recording, call) if mixed else early
        if call != first or _launches(call) != _launches(early):
            found.append(call)
    return found


def _launches(call: DryPath) -> tuple[list[str] | None, tuple[str, ...]]:
    return call.path and [step for step in call.path if step.startswith("launch ")], call.launch_log


def _repeat(module: nn.Module, call: DryCall, times: int) -> list[tuple[int, DryPath]]:
    parameters = [value for value in entries(module).values() if isinstance(value, nn.Parameter)]
    parameters = [value for value in parameters if value.is_floating_point()]
    paths = []
    for number in range(times):
        recording = _RECORDINGS[number % len(_RECORDINGS)]
        for value in parameters:
            value.requires_grad_(recording[1]).grad = torch.empty_like(value) if recording[1] else None
        # The settings are compared in the first call of each recording here, and after all calls by the caller.
        paths.append((number % len(_RECORDINGS), _path(module, call, recording, number < len(_RECORDINGS))))
    return paths


@contextmanager
def _unseen() -> Iterator[None]:
    """Drop the launches of a tuner from the path."""
    logged = len(_PathLog.path)
    yield
    del _PathLog.path[logged:]


class _CutOff(LookupError):
    """Ends a call whose path has its maximum length. A `LookupError`, since `ExceptionWatch` does not count these."""


class _PathLog(DispatchMode):
    """Logs the operators and launches of one call."""

    path: list[str] = []
    most = sys.maxsize  # steps
    seed = 0
    cut_off = ""
    left = ""  # what calls changed of PyTorch's settings
    returned: dict[int, Tensor] = {}  # results of the first time through all calls, by the address of their memory
    again = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        # A composite operator arrives whole in inference mode; elsewhere PyTorch takes it apart.
        if torch.is_inference_mode_enabled() and _dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE):
            with self:
                return func._op_dk(_COMPOSITE, *args, **(kwargs or {}))
        if name not in op_census.VIEW | op_census.ALLOCATE | op_census.ASK:
            self.step(name)
        return func(*args, **(kwargs or {}))

    @classmethod
    def step(cls, name: str) -> None:
        if len(cls.path) == cls.most:
            raise _CutOff
        cls.path.append(name)


def _log_launch(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Launched:
    if not warmup:
        _PathLog.step(f"launch {self.__name__}")
        bound = bind(self.fn, args, options)
        programs = sizes(grid, bound)
        if any(count > _TALLEST for count in programs[1:]):
            raise RuntimeError("Triton Error [CUDA]: invalid argument")
        session.add(self.__name__, programs, bound, options)
    return Launched()


def _log_returned(result: Any, given: Iterable[Tensor]) -> None:
    """Log a result in the memory of an earlier one, which the caller may still hold."""
    free = [value for value in tree_leaves(result) if isinstance(value, Tensor) and value.numel()]
    own = {value.untyped_storage().data_ptr() for value in given}
    found = {value.untyped_storage().data_ptr(): value for value in free}
    if found.keys() & _PathLog.returned.keys() - own:
        _PathLog.path.append("returns the memory of an earlier result")
    if not _PathLog.again:
        _PathLog.returned |= found


def _with_history(value: Tensor, taking: bool) -> Tensor:
    """The input as a result of an operator on a tensor that requires a gradient, or as a parameter with a gradient."""
    if taking:
        return value.requires_grad_().view_as(value)
    parameter = nn.Parameter(value)
    parameter.grad = torch.empty_like(parameter)
    return parameter


def _watched(watch: ExceptionWatch, module: nn.Module, call: DryCall) -> DryPath:
    """The path of a call. Exceptions that end the call count as not caught."""
    before = watch.first
    with watch:
        path = _path(module, call)
    if path.path is None:
        watch.first = before
    return path


def _watched_or_otherwise(watch: ExceptionWatch, module: nn.Module, call: DryCall) -> DryPath:
    """The path of a call, or of its alternative `otherwise` if the call raises."""
    found = _watched(watch, module, call)
    return _watched(watch, module, call.otherwise) if found.path is None and call.otherwise else found


def _path(module: nn.Module, call: DryCall, recording: Recording | None = None, watched: bool = True) -> DryPath:
    """The path of a call. A recorded call gets inputs at storage offsets, a layout that no trial has.

    If the call is `watched`, PyTorch's settings are compared before and after it.
    """
    record, taking = recording or NO_GRAD
    _PathLog.path, session.trial = [], call.trial
    _PathLog.most = sys.maxsize if call.steps is None else call.steps
    try:
        with record():
            inputs = zeros(call.inputs, fake_cuda.DEVICE)
            if recording:
                inputs = [offset(value, _PathLog.seed) for value in inputs]
                if not torch.is_inference_mode_enabled():
                    inputs = [_with_history(each, taking) if each.is_floating_point() else each for each in inputs]
            args, kwargs = arguments(call, inputs)
            session.begin(module, inputs)
            before = global_state.settings() if watched else {}
            with _PathLog():
                result = module(*args, **kwargs)
            _PathLog.left = _PathLog.left or global_state.changed(before)
            if recording is None:  # repetitions may give one result again, if the first calls did
                _log_returned(result, (*inputs, *entries(module).values()))
    except _CutOff:
        return DryPath([*_PathLog.path, _PathLog.cut_off], tuple(session.log))
    except Exception as error:  # noqa: BLE001  what a candidate refuses, it does not get wrong
        return DryPath(None, raised=describe(error, _MESSAGE))
    return DryPath(_PathLog.path, tuple(session.log))
