"""Guest: a candidate's launches, compiled for each target; nothing runs, and no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from ..candidate import fake_cuda, module_call
from ..candidate.launch_log import bind, session, sizes
from ..compiler import autotune
from ..compiler.codegen_cache import Optimizer, once
from ..compiler.compile_only_driver import CompileOnlyDriver, Recorder, ScratchCache

_WARM_TARGETS = ["sm_80", "sm_90", "sm_100", "gfx942"]
_MESSAGE = 2000  # characters


def warm() -> None:
    """A first compile for each backend takes most of a second, all later ones little."""
    triton.knobs.compilation.disable_line_info = True
    triton.knobs.compilation.store_binary_only = True
    triton.knobs.cache.manager_class = ScratchCache
    nvidia.llvm = Optimizer(nvidia.llvm)
    CUDABackend.make_llir = nvidia.llvm.taken(CUDABackend.make_llir)
    CUDABackend.make_ptx, CUDABackend.make_cubin = once(CUDABackend.make_ptx), once(CUDABackend.make_cubin)
    autotune.install(Recorder.unseen)
    JITFunction.run = _noticed(JITFunction.run)
    _forward_for(_WARM_TARGETS, lambda _: _copy[(1,)](torch.zeros(8), torch.zeros(8), 8, BLOCK=8))
    Recorder.take()


@triton.jit
def _copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Call `code`'s entry point on the first of `trials` for each of `targets`, and say what was compiled; for the one
    of them that is named `further`, then on the trials of the numbers in `others`, too.

    A target has `kernels`, `launches`, as they are `told`, too, those that `failed`, and whether a tuner was
    `without_room` for its first choice; or the `error` that compiling for it raised. What the others give is the
    target's `others`, by number. Inputs are `input.<trial>.<i>`.
    """
    torch.set_num_threads(1)

    def forward(number: int) -> None:
        trial = request["trials"][number]
        session.trial = number
        inputs = [tensors[f"input.{number}.{i}"] for i in range(trial["inputs"])]
        module_call.call(module, trial, inputs, None, tensors.get(f"gradient.{number}"))

    with fake_cuda.pretend(), _Cleared():
        module = nn.Module.to(module_call.constructed(request, request["code"], "candidate"), fake_cuda.DEVICE)
        return _forward_for(request["targets"], forward, request["further"], request["others"]), {}


class _Cleared(TorchFunctionMode):
    """New memory holds zeros. No kernel writes it here, and operators that run between them are given it: as an index,
    or as a matrix to invert, what lay there before would make them raise."""

    _MAKING = (torch.empty, torch.empty_like, torch.empty_strided, Tensor.new_empty, Tensor.new_empty_strided)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.zero_() if func in self._MAKING else result


def _noticed(run: Callable[..., Any]) -> Callable[..., Any]:
    """Launches are told, and those that raise noticed: a candidate could go on, and another way than where it is
    interpreted."""

    @wraps(run)
    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        try:
            compiled = run(self, *args, grid=grid, warmup=warmup, **options)
        except Exception as error:
            session.failed.append(f"{self.__name__}: {_told(error)}"[:_MESSAGE])
            raise
        if not warmup:
            bound = bind(self.fn, args, options)
            session.tell(self.__name__, sizes(grid, bound), bound, options)
        return compiled

    return launch


def _forward_for(
    targets: Sequence[str], forward: Callable[[int], Any], further: str = "", others: Sequence[int] = ()
) -> dict[str, Any]:
    driver = CompileOnlyDriver(list(targets))
    driver.activate()
    reply: dict[str, Any] = {}
    for device, name in enumerate(targets):
        driver.set_current_device(device)
        autotune.forget()
        reply[name] = _compiled(forward, 0)
        if name == further:
            reply[name]["others"] = {str(number): _compiled(forward, number) for number in others}
    return reply


def _compiled(forward: Callable[[int], Any], number: int) -> dict[str, Any]:
    try:
        forward(number)
        seen = Recorder.take() | {"told": session.told, "failed": session.failed[:8]}
        return seen | {"without_room": session.without_room}
    except Exception as error:  # noqa: BLE001  whatever the compiler says is the finding
        Recorder.take()
        return {"error": _told(error)[:_MESSAGE]}
    finally:
        session.failed, session.without_room = [], False


def _told(error: BaseException) -> str:
    """What Triton says of a kernel that another calls stands in the cause of what it says of the caller."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    return f"{type(first).__name__}: {first}" + ("" if first is error else f" in {error}")
