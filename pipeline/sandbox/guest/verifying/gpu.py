"""A GPU that is not there, the same in every guest that calls a candidate.

Kernels' wrappers allocate on "cuda", size a grid by the number of processors, make a tensor's device current around a
launch, or insist on a tensor that is on a GPU. All of them must go the way here that they go on a GPU: what is verified
is then what will run, and a candidate that asks in order to behave otherwise where it is checked gets no other answer.

Tensors of the GPU are tensors in the guest's memory. The others are known by a mark: what is made without the name of
a device, or moved to the CPU, is on the host, and a kernel that is given it fails as it does on a GPU.
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
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = torch.device("cuda", 0)
PROPERTIES = {
    "name": "NVIDIA H100 80GB HBM3",
    "major": 9,
    "minor": 0,
    "multi_processor_count": 132,
    "warp_size": 32,
    "total_memory": 80 * 2**30,
    "max_threads_per_multi_processor": 2048,
    "regs_per_multiprocessor": 65536,
    "shared_memory_per_block": 49152,
    "shared_memory_per_block_optin": 232448,
    "shared_memory_per_multiprocessor": 233472,
    "L2_cache_size": 50 * 2**20,
}
_HOST = torch.device("cpu")
_MARK = "_is_on_host"


@contextlib.contextmanager
def pretend() -> Iterator[None]:
    """One GPU: what is asked of it is answered for good, tensors are on it inside."""
    properties = SimpleNamespace(**PROPERTIES)
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
    for name, answer in answers.items():
        setattr(torch.cuda, name, _always(answer))
    for name in ("device", "device_of"):  # context managers, and there is one device
        setattr(torch.cuda, name, _always(contextlib.nullcontext()))
    torch.version.cuda = torch.version.cuda or "13.0"
    torch.backends.cudnn.enabled = False  # layers of torch.nn would hand it what they take for a GPU's tensors
    triton.runtime.driver.set_active(SimpleNamespace(get_active_torch_device=_always(DEVICE)))
    mode = _OnGpu()
    with mode, mock.patch.object(BackwardCFunction, "apply", _inside(mode, BackwardCFunction.apply)):
        yield


def is_on_host(tensor: Tensor) -> bool:
    """Whether a GPU could not reach it."""
    return getattr(tensor, _MARK, False)


class OutOfReach(ValueError):
    """A kernel was given a tensor that is not on the GPU; Triton raises a ValueError."""


def check_reachable(arguments: Iterable[Any]) -> None:
    """Raises `OutOfReach`."""
    if any(map(is_on_host, tensors_of(arguments))):
        raise OutOfReach("a kernel was given a tensor that is on the CPU")


def tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    """Those that are, or are in, a launch's arguments."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, TensorDescriptor):
            yield value.base
        elif isinstance(value, list | tuple):
            yield from tensors_of(value)


class Here(TorchFunctionMode):
    """What is asked for on a GPU is made here, and nothing is said of a GPU: for a reference, which may name one."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        func, args, kwargs, _ = _asked(func, args, kwargs or {})
        return func(*args, **kwargs)


class _OnGpu(TorchFunctionMode):
    """Tensors say that they are on the GPU, unless they were made on the host."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func in _QUESTIONS and len(args) == 1 and not kwargs:
            return _QUESTIONS[func](args[0], func(args[0]))
        func, args, kwargs, place = _asked(func, args, kwargs or {})
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


def _asked(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any], torch.device | None]:
    """The call as it can be done here, and where its result shall be; None if it names no device."""
    if func in (Tensor.cuda, Tensor.cpu):
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


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer


def _inside(mode: TorchFunctionMode, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` in `mode`, also where PyTorch calls it while the mode handles a call."""

    def call(*args: Any) -> Any:
        with contextlib.nullcontext() if mode in _get_current_function_mode_stack() else mode:
            return function(*args)

    return call


def _reading(attribute: str) -> Any:
    """What a mode is told is called when a tensor's attribute is read."""
    return getattr(Tensor, attribute).__get__


# What can be asked of a tensor, and the answer, from the tensor and the true one.
_QUESTIONS: dict[Any, Callable[[Tensor, Any], Any]] = {
    _reading("device"): lambda tensor, true: DEVICE if true == _HOST and not is_on_host(tensor) else true,
    _reading("is_cuda"): lambda tensor, true: not is_on_host(tensor),
    _reading("is_cpu"): lambda tensor, true: true and is_on_host(tensor),
    Tensor.get_device: lambda tensor, true: -1 if is_on_host(tensor) else 0,
    Tensor.is_shared: lambda tensor, true: true or not is_on_host(tensor),
    Tensor.type: lambda tensor, true: true if is_on_host(tensor) else true.replace("torch.", "torch.cuda."),
}
