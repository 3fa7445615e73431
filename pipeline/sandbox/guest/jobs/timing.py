"""Guest: the reference, the reference under `torch.compile`, and the candidate, timed in turns by one GPU's clock.

The candidate comes as a program, and no Python of it runs here; where there is none, as its source. What is said here
is a claim, which the host holds against what it knows (`transforms/time/check.py`).
"""

from __future__ import annotations

import json
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
from kernelquarry.pipeline.sandbox.timing_inputs import draw_timing_inputs

from ..candidate import module_call
from ..compiler.player import Player
from ..lib.pytree import fill, flatten
from . import compile as compiling
from . import execute, lower

_WARM = 3  # calls of each before the clock is looked at
_ROUNDS = (10, 100)  # at least, at most
_LONG_S = 1.0  # after which no round is begun but those that there must be
_CACHES = 3  # times the last level of cache that is written to between two calls
_OFF = 0.01  # of the largest value: elements that are further off than that are wrong
_MESSAGE = 500  # characters

Call = Callable[[], Any]


def warm() -> None:
    """Inductor and Dynamo take seconds to import and to compile for the first time."""
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


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Time one call: `args`, `kwargs`, and what is `drawn` for their tensors.

    The reference is the source `reference`, whose entry point is in `entry_points`, with `init_args`. The candidate is
    a `program` with its `kernels`, whose binaries come as `binary.<sha256>` and whose constants as
    `constant.0.<storage>`; or else the source `candidate`.

    Replies with the `times` of each contender in microseconds, one a round; what was `left_out`, and why; the bytes
    that the reference had `written`, and the operations, `flops`, of its products; and the share of the candidate's
    elements that are `wrong`. The state that the program names goes as `state.<name>`.
    """
    torch.set_num_threads(1)
    cuda = execute.meet(request["gpu"])
    device_interface.init_device_reg()  # again, now that there is a device
    with torch.no_grad():
        reference = _construct(request, "reference", cuda)
        state = {name: value for name, value in reference.state_dict().items() if isinstance(value, Tensor)}
        named = request.get("program", {}).get("named", {})
        results = {name: state[name.removeprefix("state.")].cpu() for name in named if name.startswith("state.")}
        inputs = _inputs(request, cuda)
        calls = {"eager": _forward(reference, request, inputs)}
        calls["candidate"] = _candidate(request, tensors, state, cuda)
        with exclusive_use(request["gpu"]):
            reply: dict[str, Any] = _compared(calls, [*inputs, *state.values()])
        reply["left_out"] = {}
        try:
            compiled = torch.compile(reference, dynamic=False)
            calls["compile"] = _forward(compiled, request, _inputs(request, cuda))
            _repeat(calls["compile"])
        except Exception as error:  # noqa: BLE001  whatever the compiler says is why there is no such contender
            calls.pop("compile", None)
            reply["left_out"]["compile"] = f"{type(error).__name__}: {error}"[:_MESSAGE]
        with exclusive_use(request["gpu"]):
            for call in calls.values():
                _repeat(call)
            reply["times"] = _rounds(calls, _flush(cuda.memory))
    return reply, results


def _construct(request: Mapping[str, Any], name: str, cuda: Cuda) -> nn.Module:
    module = module_call.construct(request[name], name, request["entry_points"][name], request["init_args"])
    return module.to(cuda.memory)


def _inputs(request: Mapping[str, Any], cuda: Cuda) -> list[Tensor]:
    """The same values each time, in memory of their own: a call may change them."""
    return draw_timing_inputs(request["drawn"], cuda.memory)


def _forward(module: Callable[..., Any], request: Mapping[str, Any], inputs: Sequence[Tensor]) -> Call:
    args, kwargs = (fill(json.loads(request[name]), inputs) for name in ("args", "kwargs"))
    return partial(module, *args, **kwargs)


def _candidate(
    request: Mapping[str, Any], tensors: Mapping[str, Tensor], state: Mapping[str, Tensor], cuda: Cuda
) -> Call:
    if "program" in request:
        values = {f"input.{index}": value for index, value in enumerate(_inputs(request, cuda))}
        values |= {f"state.{name}": value for name, value in state.items()}
        return Player(request["program"], request["kernels"], tensors, values, cuda)
    module = _construct(request, "candidate", cuda)
    module_call.load_state(module, state)
    return _forward(module, request, _inputs(request, cuda))


def _compared(calls: Mapping[str, Call], held: Sequence[Tensor]) -> dict[str, Any]:
    """One call of each on the same values, and what the reference's had to do; `held` is the memory that it was given.

    Their outputs are let go before anything else is timed.
    """
    with FlopCounterMode(display=False) as counter:
        expected = _outputs(calls["eager"]())
    found = _outputs(calls["candidate"]())
    return {
        "flops": counter.get_total_flops(),
        "written": written_bytes(expected, held),
        "wrong": wrong_share(expected, found),
    }


def _outputs(result: Any) -> list[Tensor]:
    outputs: list[Tensor] = []
    flatten(result, outputs)
    return outputs


def written_bytes(outputs: Sequence[Tensor], held: Sequence[Tensor]) -> int:
    """Of the outputs' own memory, each byte once."""
    owned = {tensor.untyped_storage().data_ptr() for tensor in held}
    sizes: dict[int, int] = {}
    for output in outputs:
        storage = output.untyped_storage()
        if storage.data_ptr() not in owned:
            size = min(storage.nbytes(), output.numel() * output.element_size())
            sizes[storage.data_ptr()] = max(size, sizes.get(storage.data_ptr(), 0))
    return sum(sizes.values())


def wrong_share(expected: Sequence[Tensor], found: Sequence[Tensor]) -> float:
    """Of the floating elements, those that are far off; all of them if the outputs have other shapes.

    Integers are not looked at: an index may well be another one where two values are nearly equal.
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
    """What empties the GPU's last level of cache of all that a call before has left there."""
    size = _CACHES * torch.cuda.get_device_properties(device).L2_cache_size
    return torch.empty(size, dtype=torch.uint8, device=device).zero_


def _rounds(calls: Mapping[str, Call], flush: Call) -> dict[str, list[float]]:
    """Microseconds of each call in each round. Rounds start with another call each, so that none has the best place."""
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
    """By events on either side, the GPU having nothing else to do; the flush gives the host time to get ahead."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    flush()
    before.record()
    call()
    after.record()
    torch.cuda.synchronize()
    return 1e3 * before.elapsed_time(after)
