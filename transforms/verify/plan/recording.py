"""Tensors of the evaluator: torch's on the device `meta`, and a record of the memory and operators of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_non_overlapping_and_dense_or_false

from kernelquarry.filters.language import tables
from kernelquarry.pipeline.sandbox.executor.program import Copy, Fill, View
from kernelquarry.pipeline.sandbox.guest.lib.dispatch_mode import DispatchMode
from kernelquarry.pipeline.sandbox.guest.lib.pytree import tensors_of
from kernelquarry.pipeline.sandbox.operator_kinds import COPY, FREE, INITIALISE

from .launch_plan import Clone, Operator, Step, Storage
from .values import Device, Raised, Unsupported

_MARK = "_is_on_host"
_HOST = Device("cpu", None)
_GPU = Device()
_VALUES = dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero_"), 0)
_VALUES |= dict.fromkeys(("ones", "ones_like", "new_ones"), 1)
# Functions that take a device where no tensor gives it.
_FACTORIES = tables.ALLOCATION.names | tables.CONSTRUCTOR.names
# Functions that take a tensor apart, and the parameter that says into how many parts, at which places or of which size.
_PARTS = dict.fromkeys(("hsplit", "vsplit", "dsplit", "split"), "split_size_or_sections")
_PARTS |= dict.fromkeys(("chunk", "unsafe_chunk"), "chunks")
_PARTS |= {"tensor_split": "indices_or_sections", "unsafe_split": "split_size", "unbind": "dim"}
_MOST_PARTS = 10_000
_ALIKE = frozenset(
    f"aten::{name}" for name in ("clone", "empty_like", "full_like", "ones_like", "zeros_like", "_to_copy")
)
ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


class Recording(DispatchMode):
    """The storages, steps and operators of a call that runs inside."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: list[Storage] = []
        self.steps: list[Step] = []
        self.operators: set[str] = set()
        self._numbers: dict[int, int] = {}
        self._kept: list[torch.UntypedStorage] = []  # alive, so that no number is used twice

    def name(self, tensor: Tensor, origin: str, start: int = 0) -> None:
        """Register the storage of an input or of the module's state."""
        self._register(tensor, origin, start)

    def view(self, tensor: Tensor) -> View:
        number = self._register(tensor, "")
        return View(number, tensor.dtype, tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))

    def _register(self, tensor: Tensor, origin: str, start: int = 0) -> int:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self.storages)
            self._kept.append(storage)
            self.storages.append(Storage(origin, storage.nbytes(), start))
        return self._numbers[storage._cdata]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._schema.name in _ALIKE and (kwargs or {}).get("memory_format") in (None, torch.preserve_format):
            result = _like(args[0], result)
        name = func._schema.name.replace("::", ".")
        operator = name.removeprefix("aten.")
        if operator in ("_to_copy", "copy_"):
            if args[0].dtype != (result if operator == "_to_copy" else args[1]).dtype:
                self.operators.add("aten._to_copy")
        elif operator not in FREE:
            self.operators.add(name)
            views = [tuple(map(self.view, tensors_of(each))) for each in ([args, kwargs], result)]
            self.steps.append(Operator(name, *views))
        if operator in INITIALISE:
            self._fill(operator, result, args)
        elif operator == "copy_":
            self.steps.append(Copy(self.view(args[0]), self.view(args[1].expand(args[0].shape))))
        elif operator in COPY | {"_to_copy"}:
            kind = Clone if result.dtype == args[0].dtype else Copy
            self.steps.append(kind(self.view(result), self.view(args[0])))
        return result

    def _fill(self, operator: str, result: Tensor, args: Sequence[Any]) -> None:
        if operator in _VALUES:
            value = _VALUES[operator]
        else:  # the value is the last positional argument of `new_full`
            value = args[{"scalar_tensor": 0, "new_full": -1}.get(operator, 1)]
        if isinstance(value, Tensor):
            raise Unsupported("a fill with a value that is computed")
        self.steps.append(Fill(self.view(result), value))


def _like(tensor: Tensor, made: Tensor) -> Tensor:
    """The result of an operator that keeps strides. On `meta`, torch loses those of axes with one element."""
    if made.stride() == tensor.stride() or not is_non_overlapping_and_dense_or_false(tensor):
        return made
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=made.dtype, device="meta")


def is_on_host(tensor: Tensor) -> bool:
    """True if a kernel could not reach the tensor on a GPU."""
    return getattr(tensor, _MARK, False)


def mark_on_host(tensor: Tensor) -> None:
    setattr(tensor, _MARK, True)


def as_device(value: Any, index: int | None = None) -> Device:
    """The device that torch makes of a device, a text or a number."""
    if isinstance(value, Device):
        return value
    if isinstance(value, int):
        return Device("cuda", value)
    kind, _, number = str(value).partition(":")
    if kind not in ("cuda", "cpu", "meta") or (number and not number.isdecimal()):
        raise Raised(f"RuntimeError: no device {value}")
    return Device(kind, int(number) if number else index)


def call_torch(path: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function or method of torch on meta tensors, as on a GPU that is the only one.

    Args:
        path: of the function; a method is `torch.Tensor.<name>`.

    Raises:
        Raised: torch refuses the arguments.
        Unsupported: the result depends on values, or is on another device.
    """
    name = path.rpartition(".")[2]
    method = path.startswith("torch.Tensor.")
    args, kwargs, device = _without_device(name if method else "", list(args), dict(kwargs))
    given = list(tensors_of([args, kwargs]))
    if path in _FACTORIES and (not given or device is not None):
        kwargs["device"] = "meta"
    if name in _PARTS and given:
        _refuse_many_parts(name, given[0], args, kwargs)
    if method and name in ("to", "cuda", "cpu") and len(args) == 1 and not kwargs.keys() - {"non_blocking", "copy"}:
        function, kwargs = (lambda tensor: tensor), {}
    try:
        result = function(*args, **kwargs)
    except Unsupported:
        raise
    except ERRORS as error:
        if isinstance(error, NotImplementedError) or "meta tensor" in str(error).lower():
            raise Unsupported(f"{path} depends on values: {error}") from error
        raise Raised(f"{type(error).__name__}: {error}") from error
    return _placed(result, given, device)


def _refuse_many_parts(name: str, tensor: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse to take a tensor apart into more views than a kernel has use for."""
    number = args[1] if len(args) > 1 else kwargs.get(_PARTS[name], 0)
    longest = max(tensor.shape, default=0)
    if not isinstance(number, int):
        parts = len(number) + 1  # sizes or ends
    elif name == "unbind":
        parts = tensor.shape[number] if -tensor.dim() <= number < tensor.dim() else 0
    elif name in ("split", "unsafe_split"):
        parts = longest // max(number, 1)
    else:
        parts = min(number, longest)
    if parts > _MOST_PARTS:
        raise Unsupported(f"{name} of a tensor into over {_MOST_PARTS} parts")


def _without_device(method: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any], Any]:
    """The arguments without the device that they name, and that device; None if they name none."""
    named = kwargs.pop("device", None)
    if method in ("cuda", "cpu"):
        return args[:1], kwargs, _GPU if method == "cuda" else _HOST
    if method == "to" and len(args) > 1 and named is None:
        if isinstance(args[1], Tensor):
            named = _HOST if is_on_host(args[1]) else _GPU
            args = [args[0], args[1].dtype, *args[2:]]
        elif isinstance(args[1], Device | str | int) and not isinstance(args[1], bool):
            named = args.pop(1)
    elif (
        named is None
        and (place := next((i for i, each in enumerate(args) if isinstance(each, Device)), None)) is not None
    ):
        named = args.pop(place)
    if named is None:
        return args, kwargs, None
    device = as_device(named)
    if (device.type == "cuda" and device.index) or device.type == "meta":
        raise Unsupported(f"memory of the device {device}")
    return args, kwargs, device


def _placed(result: Any, given: Sequence[Tensor], device: Device | None) -> Any:
    """The result with a mark on new tensors that are in the host's memory."""
    if device is None:
        on_host = all(map(is_on_host, given))
    else:
        on_host = device.type == "cpu"
        if any(result is each for each in given) and is_on_host(result) != on_host:
            result = result.clone()  # a move copies
    if on_host:
        for made in tensors_of(result):
            if not any(made is each for each in given):
                mark_on_host(made)
    return result
