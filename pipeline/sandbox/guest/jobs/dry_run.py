"""Guest job: the path of a candidate's forward at other sizes.

No kernel runs or is compiled, so large sizes cost little: memory that nobody writes to is not allocated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from triton.runtime.jit import JITFunction

from kernelquarry.pipeline.sandbox.jobs.dry_run import DryCall, DryPath, DryRunReply, DryRunRequest
from kernelquarry.pipeline.sandbox.operator_kinds import ALLOCATE, ASK, VIEW

from ..candidate import fake_cuda, op_census
from ..candidate.candidate_call import arguments
from ..candidate.input_layouts import zeros
from ..candidate.launch_log import Launched, bind, session, sizes
from ..candidate.module_setup import construct
from ..compiler import autotune
from ..lib.dispatch_mode import DispatchMode
from ..lib.errors import describe

_MESSAGE = 200  # characters
_TALLEST = 65_535  # programs along a grid's second and third axis


def warm() -> None:
    op_census.warm()
    autotune.install(_unseen)


def run(request: DryRunRequest, tensors: dict[str, Tensor]) -> tuple[DryRunReply, dict[str, Tensor]]:
    """The path of each call, or of its alternative `otherwise` if the call raises."""
    torch.set_num_threads(1)
    JITFunction.run = _log_launch
    _PathLog.cut_off = request.cut_off
    with fake_cuda.pretend():
        module = nn.Module.to(construct(request.module, "dry_run"), fake_cuda.DEVICE)
        return DryRunReply(tuple(_path_or_otherwise(module, call) for call in request.calls)), {}


def _path_or_otherwise(module: nn.Module, call: DryCall) -> DryPath:
    found = _path(module, call)
    if found.path is None:
        return _path(module, call.otherwise) if call.otherwise else found
    return _path(module, call)  # a tuner resets what it timed in the first call of a size


def _path(module: nn.Module, call: DryCall) -> DryPath:
    _PathLog.path, session.trial = [], call.trial
    _PathLog.most = sys.maxsize if call.steps is None else call.steps
    try:
        with torch.no_grad():
            inputs = zeros(call.inputs, fake_cuda.DEVICE)
            args, kwargs = arguments(call, inputs)
            session.begin(module, inputs)
            with _PathLog():
                module(*args, **kwargs)
    except _CutOff:
        return DryPath([*_PathLog.path, _PathLog.cut_off], tuple(session.log))
    except Exception as error:  # noqa: BLE001  what a candidate refuses, it does not get wrong
        return DryPath(None, raised=describe(error, _MESSAGE))
    return DryPath(_PathLog.path, tuple(session.log))


@contextmanager
def _unseen() -> Iterator[None]:
    """Drop the launches of a tuner from the path."""
    logged = len(_PathLog.path)
    yield
    del _PathLog.path[logged:]


class _CutOff(Exception):
    """Ends a call whose path has its maximum length."""


class _PathLog(DispatchMode):
    """Logs the operators and launches of one call."""

    path: list[str] = []
    most = sys.maxsize  # steps
    cut_off = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name not in VIEW | ALLOCATE | ASK:
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
