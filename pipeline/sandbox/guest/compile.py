"""Guest: a candidate's launches, compiled for each target; nothing runs, and no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.jit import JITFunction

from .verifying import gpu, subject, tuning
from .verifying.driver import CompileOnlyDriver, Recorder, ScratchCache
from .verifying.once import once
from .verifying.session import session

_WARM_TARGETS = ["sm_80", "sm_90", "sm_100", "gfx942"]
_MESSAGE = 2000  # characters


def warm() -> None:
    """A first compile for each backend takes most of a second, all later ones little."""
    triton.knobs.compilation.disable_line_info = True
    triton.knobs.compilation.store_binary_only = True
    triton.knobs.cache.manager_class = ScratchCache
    CUDABackend.make_ptx, CUDABackend.make_cubin = once(CUDABackend.make_ptx), once(CUDABackend.make_cubin)
    tuning.install(Recorder.unseen)
    JITFunction.run = _noticed(JITFunction.run)
    _forward_for(_WARM_TARGETS, lambda: _copy[(1,)](torch.zeros(8), torch.zeros(8), 8, BLOCK=8))
    Recorder.take()


@triton.jit
def _copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Call `code`'s entry point once for each of `targets`, on inputs `input.0.<i>`, and say what was compiled.

    A target has `kernels`, `launches` and those that `failed`, or the `error` that compiling for it raised.
    """
    torch.set_num_threads(1)
    trial = request["trials"][0]
    inputs = [tensors[f"input.0.{i}"] for i in range(trial["inputs"])]
    gradient = tensors.get("gradient.0")
    with gpu.pretend():
        module = nn.Module.to(subject.constructed(request, request["code"], "candidate"), gpu.DEVICE)
        return _forward_for(request["targets"], lambda: subject.call(module, trial, inputs, None, gradient)), {}


def _noticed(run: Callable[..., Any]) -> Callable[..., Any]:
    """Launches that raise are noticed: a candidate could go on, and another way than where it is interpreted."""

    @wraps(run)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(self, *args, **kwargs)
        except Exception as error:
            session.failed.append(f"{self.__name__}: {_told(error)}"[:_MESSAGE])
            raise

    return launch


def _forward_for(targets: list[str], forward: Any) -> dict[str, Any]:
    driver = CompileOnlyDriver(targets)
    driver.activate()
    reply: dict[str, Any] = {}
    for device, name in enumerate(targets):
        driver.set_current_device(device)
        try:
            forward()
            reply[name] = Recorder.take() | {"failed": session.failed[:8]}
        except Exception as error:  # noqa: BLE001  whatever the compiler says is the finding
            reply[name] = {"error": _told(error)[:_MESSAGE]}
            Recorder.take()
        session.failed.clear()
    return reply


def _told(error: BaseException) -> str:
    """What Triton says of a kernel that another calls stands in the cause of what it says of the caller."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    return f"{type(first).__name__}: {first}" + ("" if first is error else f" in {error}")
