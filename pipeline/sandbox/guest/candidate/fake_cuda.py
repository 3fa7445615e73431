"""A pretended GPU, the same in every guest that calls a candidate.

Wrappers of kernels allocate on "cuda", size a grid by the number of processors, make a tensor's device current around a
launch, or require a tensor on a GPU. Each must take the same path here as on a GPU, so that the verified path is the
one that runs.

Tensors on the GPU are tensors in the guest's memory. Tensors on the host have a mark: those that are made without a
device, or moved to the CPU. A kernel that gets one fails as it does on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from triton.backends.compiler import GPUTarget
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = torch.device("cuda", 0)


# Properties of an H100.
PROPERTIES = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    gcnArchName="NVIDIA H100 80GB HBM3",
    major=9,
    minor=0,
    multi_processor_count=132,
    warp_size=32,
    total_memory=84_942_979_072,
    max_threads_per_block=1024,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=227 << 10,
    shared_memory_per_multiprocessor=228 << 10,
    L2_cache_size=50 << 20,
    clock_rate=1980000,
    memory_clock_rate=2619000,
    memory_bus_width=5120,
    is_integrated=0,
    is_multi_gpu_board=0,
    pci_bus_id=25,
    pci_device_id=0,
    pci_domain_id=0,
)
_HOST = torch.device("cpu")


def other_gpu(seed: int) -> SimpleNamespace:
    """A GPU with another number of processors, of which a candidate may make a grid."""
    return SimpleNamespace(**vars(PROPERTIES) | {"multi_processor_count": 20 + seed % 151})


_MARK = "_is_on_host"


@contextlib.contextmanager
def pretend() -> Iterator[None]:
    """Emulate one CUDA device for the tensors inside. Device queries stay patched."""
    answer(PROPERTIES)
    torch.version.cuda = torch.version.cuda or "13.0"
    torch.backends.cudnn.enabled = False  # layers of torch.nn would pass it tensors that they take for a GPU's
    triton.runtime.driver.set_active(
        SimpleNamespace(get_active_torch_device=_always(DEVICE), get_current_target=_target)
    )
    mode = _OnGpu()
    with mode, mock.patch.object(BackwardCFunction, "apply", _inside(mode, BackwardCFunction.apply)):
        yield


def _target() -> GPUTarget:
    """The target, from the capability that `torch.cuda` reports."""
    major, minor = torch.cuda.get_device_capability()
    return GPUTarget("cuda", 10 * major + minor, 32)


def answer(properties: SimpleNamespace) -> None:
    """Patch device queries to return these properties."""
    answers: dict[str, Any] = {
        "is_available": True,
        "is_bf16_supported": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": properties,
        "get_device_capability": (properties.major, properties.minor),
        "get_device_name": properties.name,
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
    }
    # `device` and `device_of` are classes, and call these: there is one device.
    answers |= dict.fromkeys(("_exchange_device", "_maybe_exchange_device"), 0)
    for name, value in answers.items():
        setattr(torch.cuda, name, _always(value))


def is_on_host(tensor: Tensor) -> bool:
    """True if a GPU could not reach the tensor."""
    return getattr(tensor, _MARK, False)


def move_to_gpu(tensors: Iterable[Tensor]) -> None:
    """Make tensors ones of the GPU, in place."""
    for tensor in tensors:
        if is_on_host(tensor):
            delattr(tensor, _MARK)


class OutOfReach(ValueError):
    """A kernel got a tensor that is not on the GPU; Triton raises a ValueError."""


def check_reachable(arguments: Iterable[Any]) -> None:
    """Raise `OutOfReach` if a tensor is on the host."""
    if any(map(is_on_host, tensors_of(arguments))):
        raise OutOfReach("a kernel was given a tensor that is on the CPU")


def tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors in a launch's arguments."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, TensorDescriptor):
            yield value.base
        elif isinstance(value, list | tuple):
            yield from tensors_of(value)


class RedirectCudaToCpu(TorchFunctionMode):
    """Redirects a reference that names a GPU to the CPU, without pretending that there is a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        func, args, kwargs, _ = _redirected(func, args, kwargs or {})
        return func(*args, **kwargs)


class _OnGpu(TorchFunctionMode):
    """Makes tensors report that they are on the GPU, unless they were made on the host."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func in _QUERIES and len(args) == 1 and not kwargs:
            return _QUERIES[func](args[0], func(args[0]))
        func, args, kwargs, place = _redirected(func, args, kwargs or {})
        if place is not None and place.type == "cuda" and place.index:
            raise RuntimeError("CUDA error: invalid device ordinal")
        given = list(tensors_of([*args, *kwargs.values()]))
        result = func(*args, **kwargs)
        if place is None:
            place = _HOST if all(map(is_on_host, given)) else DEVICE
        elif any(result is one for one in given) and is_on_host(result) == (place.type == "cuda"):
            result = result.clone()  # a move copies
        if place == _HOST:
            for made in tensors_of([result]):
                if not any(made is one for one in given):
                    setattr(made, _MARK, True)
        return result


def _redirected(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any], torch.device | None]:
    """The call for the CPU, and the device that it names for its result; None if it names none."""
    if len(args) < 2 and not kwargs and func not in _MOVES:
        return func, args, kwargs, None
    if func in _MOVES:
        kwargs = {name: value for name, value in kwargs.items() if name != "device"}
        return Tensor.to, (args[0], _HOST), kwargs, DEVICE if func is Tensor.cuda else _HOST
    if func is torch.device:
        return func, args, kwargs, None
    named = kwargs.get("device")
    if func is Tensor.to:
        named = named if len(args) < 2 else args[1]
    elif named is None and len(args) > 1:
        named = next((value for value in args if isinstance(value, torch.device)), None)
    if isinstance(named, Tensor):
        return func, args, kwargs, _HOST if is_on_host(named) else DEVICE
    if not isinstance(named, int | str | torch.device):  # a dtype, or nothing
        return func, args, kwargs, None
    device = torch.device("cuda", named) if isinstance(named, int) else torch.device(named)
    if device.type == "cuda":
        kwargs = kwargs | {"device": _HOST} if "device" in kwargs else kwargs
        places = [index for index, value in enumerate(args) if index and value is named and not isinstance(value, int)]
        places = [1] if func is Tensor.to and len(args) > 1 else places
        args = tuple(_HOST if index in places else value for index, value in enumerate(args))
    return func, args, kwargs, device


_MOVES = frozenset((Tensor.cuda, Tensor.cpu))


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer


def _inside(mode: TorchFunctionMode, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` in `mode`, also where PyTorch calls it while the mode handles a call."""

    def call(*args: Any) -> Any:
        with contextlib.nullcontext() if mode in _get_current_function_mode_stack() else mode:
            return function(*args)

    return call


def _reading(attribute: str) -> Any:
    """The getter that a function mode sees when a tensor's attribute is read."""
    return getattr(Tensor, attribute).__get__


# Device queries of a tensor: the answer, from the tensor and its true answer.
_QUERIES: dict[Any, Callable[[Tensor, Any], Any]] = {
    _reading("device"): lambda tensor, true: DEVICE if true == _HOST and not is_on_host(tensor) else true,
    _reading("is_cuda"): lambda tensor, true: not is_on_host(tensor),
    _reading("is_cpu"): lambda tensor, true: true and is_on_host(tensor),
    Tensor.get_device: lambda tensor, true: -1 if is_on_host(tensor) else 0,
    Tensor.type: lambda tensor, true: true if is_on_host(tensor) else true.replace("torch.", "torch.cuda."),
}
