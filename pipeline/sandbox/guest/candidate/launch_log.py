"""The log of a candidate's launches, and how launches run. A guest runs one candidate, so there is one session."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch
import triton.language as tl
from torch import Tensor, nn
from triton.tools.tensor_descriptor import TensorDescriptor

from .call_memory import CallMemory


class Order(StrEnum):
    """The order in which the interpreter runs the programs of a grid. A GPU promises none."""

    FORWARD = "forward"
    REVERSE = "reverse"
    RANDOM = "random"


@dataclass
class Session:
    skip: bool = False  # launches do nothing, for a ghost replay
    order: Order = Order.FORWARD  # of the interpreted programs of a grid
    zero_masked: bool = False  # a masked load without `other` gives 0, as mostly on a GPU, in place of poison
    trial: int = 0  # number of the trial, and of the configuration of autotuned kernels
    launches: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)  # completed launches: kernel and grid
    log: list[str] = field(default_factory=list)  # launches of a call with their arguments, without values
    failed: list[str] = field(default_factory=list)  # messages of launches that raised
    configurations: int = 1  # the most of one autotuned kernel
    memory: CallMemory | None = None  # of a call whose loads and stores are checked byte by byte
    without_room: bool = False  # a selected configuration does not fit the target
    # By address, kept alive, with their names and the offsets that count as 0.
    _storages: dict[int, tuple[Any, str, int]] = field(default_factory=dict)

    def begin(self, module: nn.Module, inputs: Sequence[Tensor]) -> None:
        """Start a new call's launch log."""
        self.log, self._storages = [], {}
        for index, tensor in enumerate(inputs):
            self._name(tensor, f"input {index}", int(tensor.storage_offset()))
        for name, tensor in entries(module).items():
            self._name(tensor, f"state {name}")
        if self.memory is not None:
            lasting = {f"input {index}": tensor for index, tensor in enumerate(inputs)}
            self.memory.begin(lasting | {f"state {name}": tensor for name, tensor in entries(module).items()})

    def add(self, name: str, grid: Sequence[int], bound: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Log a launch with the arguments of the kernel's parameters and with its options, such as `num_warps`."""
        given = {**bound, **{key: value for key, value in options.items() if key not in bound}}
        written = ", ".join(f"{key}={self._written(value)}" for key, value in given.items())
        self.log.append(f"{name}{[*grid, 1, 1][:3]}({written})")

    def _written(self, value: Any) -> str:
        if isinstance(value, Tensor):
            name, start = self._name(value)
            layout = f"{list(value.shape)}, {list(value.stride())}, {value.storage_offset() - start}"
            return f"{str(value.dtype).removeprefix('torch.')}({name}, {layout})"
        if isinstance(value, TensorDescriptor):
            return f"{self._written(value.base)} as {value.shape}, {value.strides}, {value.block_shape}"
        if isinstance(value, tuple | list):
            return f"[{', '.join(map(self._written, value))}]"
        if isinstance(value, tl.constexpr):
            return self._written(value.value)
        if value is None or isinstance(value, bool | int | float | str | torch.dtype | tl.dtype):
            return str(value)
        return str(getattr(value, "__name__", type(value).__name__))

    def _name(self, tensor: Tensor, name: str = "", start: int = 0) -> tuple[str, int]:
        """Name of a tensor's storage, and the offset that counts as 0. New storages are numbered."""
        storage = tensor.untyped_storage()
        found = self._storages.setdefault(storage._cdata, (storage, name or str(len(self._storages)), start))
        return found[1:]

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Drop the launches inside from the record."""
        recorded = len(self.launches)
        yield
        del self.launches[recorded:]


def entries(module: nn.Module) -> dict[str, Tensor]:
    """The parameters, then the buffers of a module by name."""
    return {**dict(nn.Module.named_parameters(module)), **dict(nn.Module.named_buffers(module))}


def bind(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The argument of each parameter of a kernel's `function`, defaults included.

    Raises:
        TypeError: there are too many arguments, or too few.
    """
    parameters = _defaults(function)
    bound = dict(zip(parameters, args, strict=False))
    named = {key: value for key, value in options.items() if key in parameters}
    if len(args) > len(parameters) or not bound.keys().isdisjoint(named):
        inspect.signature(function).bind(*args, **named)  # raises
    bound |= named
    missing = [name for name, default in parameters.items() if name not in bound and default is inspect.Parameter.empty]
    if missing:
        raise TypeError(f"{function.__name__}() missing arguments: {', '.join(missing)}")
    return {name: bound.get(name, default) for name, default in parameters.items()}


@functools.cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of a kernel's parameters, all of which have a name."""
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def sizes(grid: Any, bound: Mapping[str, Any]) -> tuple[int, ...]:
    """Sizes of a launch's grid, which may be a function of the kernel's arguments."""
    return tuple(int(n) for n in (grid(bound) if callable(grid) else grid))


class Launched:
    """Result of a launch: on a GPU it is the compiled kernel, so it is not None."""


session = Session()
