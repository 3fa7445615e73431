"""Pretend to have a GPU.

Inductor queries torch and Triton for the device that it generates code for. `pretend_gpu` answers for a chosen target,
with torch's CPU and CUDA builds. Tested with torch 2.11 to 2.13.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor
from torch._dynamo.device_interface import CudaInterface
from torch._inductor import utils
from torch._inductor.fx_passes import post_grad
from torch._inductor.runtime.hints import DeviceProperties
from torch._subclasses import fake_tensor
from triton.backends.compiler import GPUTarget

_NVIDIA = {
    "warp_size": 32,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "max_threads_per_block": 1024,
    "shared_memory_per_block": 49152,
    "gcnArchName": "",
    "is_integrated": 0,
}
# Target -> the properties that Inductor's heuristics read.
DEVICES = {
    "sm_80": SimpleNamespace(
        name="NVIDIA A100-SXM4-80GB", major=8, minor=0, total_memory=80 << 30, multi_processor_count=108,
        shared_memory_per_block_optin=166912, L2_cache_size=40 << 20, **_NVIDIA,
    ),
    "sm_90": SimpleNamespace(
        name="NVIDIA H100 80GB HBM3", major=9, minor=0, total_memory=80 << 30, multi_processor_count=132,
        shared_memory_per_block_optin=232448, L2_cache_size=50 << 20, **_NVIDIA,
    ),
    "sm_100": SimpleNamespace(
        name="NVIDIA B200", major=10, minor=0, total_memory=180 << 30, multi_processor_count=148,
        shared_memory_per_block_optin=232448, L2_cache_size=126 << 20, **_NVIDIA,
    ),
    "gfx942": SimpleNamespace(
        name="AMD Instinct MI300X", major=9, minor=4, total_memory=192 << 30, multi_processor_count=304,
        shared_memory_per_block_optin=65536, L2_cache_size=4 << 20,
        **_NVIDIA | {"warp_size": 64, "shared_memory_per_block": 65536, "gcnArchName": "gfx942:sramecc+:xnack-"},
    ),
}  # fmt: skip


def _clear_caches() -> None:
    """Clear what Inductor has cached of the device that it queried last."""
    for name in ("is_big_gpu", "get_max_num_sms", "using_b200"):
        if function := getattr(utils, name, None):
            function.cache_clear()
    DeviceProperties.create.cache_clear()


def _contiguous(self: Tensor, memory_format: torch.memory_format = torch.contiguous_format) -> Tensor:
    return torch.ops.aten.contiguous.default(self, memory_format=memory_format)


@contextlib.contextmanager
def pretend_gpu(target: str) -> Iterator[None]:
    """Make torch, Inductor and Triton see one GPU of `target`, a key of `DEVICES`."""
    device = DEVICES[target]
    is_amd = target.startswith("gfx")
    number = target if is_amd else device.major * 10 + device.minor

    def answer(value: Any) -> Any:
        return staticmethod(lambda *args, **kwargs: value)

    queries: dict[Any, dict[str, Any]] = {
        torch.cuda: {
            "is_available": True, "device_count": 1, "current_device": 0, "get_device_properties": device,
            "get_device_capability": (device.major, device.minor), "get_device_name": device.name,
            "is_initialized": False, "_lazy_init": None, "synchronize": None, "set_device": None,
            "_exchange_device": 0, "_maybe_exchange_device": 0,
        },
        CudaInterface: {
            "is_available": True, "device_count": 1, "current_device": 0, "synchronize": None,
            "get_device_properties": device, "get_compute_capability": number,
        },
        CudaInterface.Worker: {"get_device_properties": device, "current_device": 0},
    }  # fmt: skip
    patches = [
        (fake_tensor, "init_gpu_context", answer(None)),  # torch's CUDA build would look for a GPU there
        # It copies fake tensors outside of their mode, which torch's CPU build cannot.
        (post_grad, "reinplace_inplaceable_ops", answer(None)),
        # Methods whose Python binding makes the tensor's device the current one, which torch's CPU build cannot.
        (fake_tensor.FakeTensor, "contiguous", _contiguous),
        (fake_tensor.FakeTensor, "__invert__", lambda self: torch.ops.aten.bitwise_not.default(self)),
        (torch.version, "cuda", None if is_amd else torch.version.cuda or "13.0"),
        (torch.version, "hip", "6.4" if is_amd else None),
        *((owner, name, answer(value)) for owner, values in queries.items() for name, value in values.items()),
    ]
    triton_target = GPUTarget("hip" if is_amd else "cuda", number, device.warp_size)
    driver = SimpleNamespace(
        get_current_target=answer(triton_target), get_current_device=answer(0), get_current_stream=answer(0),
        get_active_torch_device=answer(torch.device("cuda", 0)), is_active=answer(True),
    )  # fmt: skip
    triton_driver = triton.runtime.driver
    previous = triton_driver._active
    with contextlib.ExitStack() as stack:
        for owner, name, value in patches:
            stack.enter_context(mock.patch.object(owner, name, value))
        triton_driver.set_active(driver)
        stack.callback(setattr, triton_driver, "_active", previous)
        stack.callback(_clear_caches)
        _clear_caches()
        yield
