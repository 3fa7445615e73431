"""Guest job: the reference, the reference under `torch.compile`, and the candidate, timed in turns by a GPU's clock.

The candidate comes as a program, and none of its Python runs here; where there is no program, as its source. The times
are claims, which the host checks (`transforms/time/check.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor, nn
from torch._dynamo import device_interface
from torch._functorch import config as functorch_config
from torch._inductor import config
from torch._inductor.runtime import triton_helpers
from torch.utils.flop_counter import FlopCounterMode
from triton.runtime.cache import FileCacheManager

from kernelquarry.pipeline.sandbox.cuda import Cuda, exclusive_use
from kernelquarry.pipeline.sandbox.jobs.timing import TimingReply, TimingRequest
from kernelquarry.pipeline.sandbox.timing_inputs import draw_timing_inputs

from ..candidate.candidate_call import arguments
from ..candidate.module_setup import construct, load_state
from ..compiler import gpu_driver
from ..compiler.player import Player
from ..lib.faults import describe
from ..lib.pytree import flatten
from . import compile as compiling
from . import lower

_WARM = 3  # calls of each before the clock is looked at
_ROUNDS = (10, 100)  # at least, at most
_LONG_S = 1.0  # after which no round is begun but those that there must be
_CACHES = 3  # times the last level of cache that is written to between two calls
_OFF = 0.01  # share of the largest value: elements that are further off are wrong

Call = Callable[[], Any]


def warm() -> None:
    """Import Inductor and Dynamo, and compile once, which takes seconds."""
    compiling.warm()
    triton.knobs.cache.manager_class = FileCacheManager  # Inductor looks for binaries where this one leaves them
    triton_helpers.set_driver_to_gpu = lambda: None  # the driver is set: Triton's own would have to be compiled
    config.compile_threads = 1
    config.strict_static_cuda_launcher = True  # the other launcher would have to be compiled, in C
    config.fx_graph_cache = functorch_config.enable_autograd_cache = False
    with mock.patch.object(torch._C, "_ensureCUDADeviceGuardSet"):  # asks CUDA, which no fork would survive
        lower.warm()
        torch.compile(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), backend="eager", dynamic=False)(torch.zeros(1, 2))
    torch._dynamo.reset()


def run(request: TimingRequest, tensors: dict[str, Tensor]) -> tuple[TimingReply, dict[str, Tensor]]:
    """Time one call of each contender, after one call of the reference and the candidate on the same values."""
    torch.set_num_threads(1)
    cuda = gpu_driver.meet(request.gpu)
    device_interface.init_device_reg()  # again, now that there is a device
    with torch.no_grad():
        reference = construct(request.reference, "reference").to(cuda.memory)
        state = {name: value for name, value in reference.state_dict().items() if isinstance(value, Tensor)}
        named = request.program["named"] if request.program else {}
        results = {name: state[name.removeprefix("state.")].cpu() for name in named if name.startswith("state.")}
        inputs = _inputs(request, cuda)
        calls = {"eager": _call(reference, request, inputs)}
        calls["candidate"] = _candidate(request, tensors, state, cuda)
        left_out = dict[str, str]()
        with exclusive_use(request.gpu):
            flops, written, wrong = _compared(calls, [*inputs, *state.values()])
        try:
            compiled = torch.compile(reference, dynamic=False)
            calls["compile"] = _call(compiled, request, _inputs(request, cuda))
            _repeat(calls["compile"])
        except Exception as error:  # noqa: BLE001  whatever the compiler says is why there is no such contender
            calls.pop("compile", None)
            left_out["compile"] = describe(error)
        with exclusive_use(request.gpu):
            for call in calls.values():
                _repeat(call)
            times = _rounds(calls, _flush(cuda.memory))
    return TimingReply({name: tuple(runs) for name, runs in times.items()}, left_out, written, flops, wrong), results


def _inputs(request: TimingRequest, cuda: Cuda) -> list[Tensor]:
    """Draw a fresh copy of the inputs, with the same values each time, since a call may change its inputs in place."""
    return draw_timing_inputs(request.inputs, cuda.memory)


def _call(module: Callable[..., Any], request: TimingRequest, inputs: Sequence[Tensor]) -> Call:
    args, kwargs = arguments(request, inputs)
    return partial(module, *args, **kwargs)


def _candidate(request: TimingRequest, tensors: Mapping[str, Tensor], state: Mapping[str, Tensor], cuda: Cuda) -> Call:
    if request.candidate is None:
        values = {f"input.{index}": value for index, value in enumerate(_inputs(request, cuda))}
        values |= {f"state.{name}": value for name, value in state.items()}
        return Player(request.program, request.kernels, tensors, values, cuda)
    module = construct(request.candidate, "candidate").to(cuda.memory)
    load_state(module, state)
    return _call(module, request, _inputs(request, cuda))


def _compared(calls: Mapping[str, Call], held: Sequence[Tensor]) -> tuple[int, int, float]:
    """Operations and written bytes of the reference's call, and the share of the candidate's elements that are wrong.

    `held` is the memory that the reference was given. The outputs are freed before anything else is timed.
    """
    with FlopCounterMode(display=False) as counter:
        expected = _outputs(calls["eager"]())
    found = _outputs(calls["candidate"]())
    return counter.get_total_flops(), written_bytes(expected, held), wrong_share(expected, found)


def _outputs(result: Any) -> list[Tensor]:
    outputs: list[Tensor] = []
    flatten(result, outputs)
    return outputs


def written_bytes(outputs: Sequence[Tensor], held: Sequence[Tensor]) -> int:
    """Bytes of the memory that the outputs do not share with `held`, each counted once."""
    owned = {tensor.untyped_storage().data_ptr() for tensor in held}
    sizes: dict[int, int] = {}
    for output in outputs:
        storage = output.untyped_storage()
        if storage.data_ptr() not in owned:
            size = min(storage.nbytes(), output.numel() * output.element_size())
            sizes[storage.data_ptr()] = max(size, sizes.get(storage.data_ptr(), 0))
    return sum(sizes.values())


def wrong_share(expected: Sequence[Tensor], found: Sequence[Tensor]) -> float:
    """The share of floating elements that are far off; 1 if the outputs have other shapes.

    Integers are not compared: where two values are nearly equal, another index may be right.
    """
    if [tensor.shape for tensor in expected] != [tensor.shape for tensor in found]:
        return 1.0
    wrong = total = 0
    for one, other in zip(expected, found, strict=True):
        if one.is_floating_point() and one.numel():
            scale = one.abs().nan_to_num(0.0, 0.0).max()
            right = (one == other) | ((one - other).abs() <= _OFF * scale) | (one.isnan() & other.isnan())
            wrong += one.numel() - int(right.sum())
            total += one.numel()
    return wrong / max(1, total)


def _repeat(call: Call) -> None:
    for _ in range(_WARM):
        call()
    torch.cuda.synchronize()


def _flush(device: torch.device) -> Call:
    """A call that overwrites the GPU's last level of cache."""
    size = _CACHES * torch.cuda.get_device_properties(device).L2_cache_size
    return torch.empty(size, dtype=torch.uint8, device=device).zero_


def _rounds(calls: Mapping[str, Call], flush: Call) -> dict[str, list[float]]:
    """Microseconds of each call in each round. Each round starts with another call, so that none has the best place."""
    names, times = list(calls), {name: list[float]() for name in calls}
    least, most = _ROUNDS
    started = time.perf_counter()
    for number in range(most):
        if number >= least and time.perf_counter() - started > _LONG_S:
            break
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(_microseconds(calls[name], flush))
    return times


def _microseconds(call: Call, flush: Call) -> float:
    """The time between events on either side of the call. The flush gives the host time to get ahead."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    flush()
    before.record()
    call()
    after.record()
    torch.cuda.synchronize()
    return 1e3 * before.elapsed_time(after)
