"""Guest job: a candidate's launches, compiled for each target; nothing runs, and no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from triton.backends.nvidia import compiler as nvidia
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.jit import JITFunction

from kernelquarry.pipeline.sandbox.jobs.compile import CompiledCall, CompileReply, CompileRequest

from ..candidate import fake_cuda
from ..candidate.candidate_call import CandidateCall
from ..candidate.launch_log import session
from ..candidate.module_setup import construct
from ..compiler import autotune
from ..compiler.codegen_cache import Optimizer, once
from ..compiler.compile_only_driver import CompileOnlyDriver, Recorder, ScratchCache
from ..compiler.deferral import deferral

_WARM_TARGETS = ["sm_80", "sm_90", "sm_100", "gfx942"]
_MESSAGE = 2000  # characters


def warm() -> None:
    """Compile for each backend once: the first compile takes most of a second, later ones little."""
    triton.knobs.compilation.disable_line_info = True
    triton.knobs.compilation.store_binary_only = True
    triton.knobs.cache.manager_class = ScratchCache
    nvidia.llvm = Optimizer(nvidia.llvm)
    CUDABackend.make_llir = nvidia.llvm.taken(CUDABackend.make_llir)
    CUDABackend.make_ptx, CUDABackend.make_cubin = once(CUDABackend.make_ptx), once(CUDABackend.make_cubin)
    deferral.install()
    autotune.install(_measured)
    JITFunction.run = _logged(JITFunction.run)
    _compile_for(_WARM_TARGETS, lambda _: _copy[(1,)](torch.zeros(8), torch.zeros(8), 8, BLOCK=8))
    Recorder.launches.clear()


@contextmanager
def _measured() -> Iterator[None]:
    """An autotuner measures: record no launch, and compile at once, so that it learns what does not fit."""
    with Recorder.unseen(), deferral.suspended():
        yield


@triton.jit
def _copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


def run(request: CompileRequest, tensors: dict[str, Tensor]) -> tuple[CompileReply, dict[str, Tensor]]:
    """Call the candidate on trial 0 and the further trials for each target."""
    torch.set_num_threads(1)
    deferral.enabled = request.deferred

    def forward(number: int) -> None:
        session.trial = number
        CandidateCall.of_trial(request.trials, number, tensors).run(module)

    with fake_cuda.pretend(), _ZeroedMemory():
        module = nn.Module.to(construct(request.module, "candidate"), fake_cuda.DEVICE)
        calls = _compile_for(request.targets, forward, request.more_trials)
    return CompileReply(calls, deferral.sources), {}


class _ZeroedMemory(TorchFunctionMode):
    """New memory holds zeros.

    No kernel writes it here, and operators between the kernels read it: as an index, or as a matrix to invert, what was
    in memory before would make them raise.
    """

    _MAKING = (torch.empty, torch.empty_like, torch.empty_strided, Tensor.new_empty, Tensor.new_empty_strided)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.zero_() if func in self._MAKING else result


def _logged(run: Callable[..., Any]) -> Callable[..., Any]:
    """Log exceptions in launches, which code of the constructor's source could catch."""

    @wraps(run)
    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        try:
            with deferral.suspended() if warmup else nullcontext():
                return run(self, *args, grid=grid, warmup=warmup, **options)
        except Exception as error:
            session.failed.append(f"{self.__name__}: {describe(error)}"[:_MESSAGE])
            raise

    return launch


def _compile_for(
    targets: Sequence[str],
    forward: Callable[[int], Any],
    more_trials: Sequence[int] = (),
) -> dict[str, tuple[CompiledCall, ...]]:
    driver = CompileOnlyDriver(list(targets))
    driver.activate()
    calls = {}
    for device, name in enumerate(targets):
        driver.set_current_device(device)
        autotune.forget()
        calls[name] = tuple(_compile(forward, number) for number in (0, *more_trials))
    return calls


def _compile(forward: Callable[[int], Any], trial: int) -> CompiledCall:
    try:
        forward(trial)
        return CompiledCall(trial, "", tuple(Recorder.launches), tuple(session.failed[:8]), session.without_room)
    except Exception as error:  # noqa: BLE001  whatever the compiler says is the finding
        return CompiledCall(trial, error=describe(error))
    finally:
        Recorder.launches.clear()
        session.failed, session.without_room = [], False


def describe(error: BaseException) -> str:
    """Describe the innermost error: Triton wraps the error of a called kernel in an error of its caller."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    return (f"{type(first).__name__}: {first}" + ("" if first is error else f" in {error}"))[:_MESSAGE]
