"""Values of names that a candidate imports, and of built-in functions: the language's tables say which there are."""

from __future__ import annotations

import builtins
import functools
import importlib
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from kernelquarry.filters.language import tables

from .recording import ERRORS, as_device, call_torch
from .values import Config, Descriptor, Device, Native, Raised, Symbol, Unsupported

_MOST = 100_000  # items of a list, a range or a text that a function takes or makes
_MOST_OF_MATH = 1000  # for factorials and the like
_MOST_PARTS = 10_000  # of a tensor that is taken apart
_MOST_BITS = 4096  # of a number
_PLAIN = (torch.dtype, torch.memory_format, torch.layout, float)


@dataclass(frozen=True, slots=True)
class Gpu:
    """The properties of the GPU that candidates may read."""

    multi_processor_count: int = 132  # of the GPU that guests simulate


@dataclass(frozen=True, slots=True)
class Target:
    backend: str = "cuda"


@dataclass(frozen=True, slots=True)
class Default:
    """`dataclasses.field`: a default of a field, or a function that makes it."""

    default: Any = None
    default_factory: Any = None


def guarded(name: str, function: Callable[..., Any]) -> Native:
    """A function of Python. What it raises, the candidate raises."""

    def call(*given: Any, **kwargs: Any) -> Any:
        args = [drained(each) if hasattr(each, "__next__") else each for each in given]
        _check_small(name, args)
        try:
            return function(*args, **kwargs)
        except ERRORS as error:
            if any(isinstance(each, torch.Tensor) for each in args):
                raise Unsupported(f"{name} of a tensor: {error}") from error
            raise Raised(f"{type(error).__name__}: {error}") from error

    return Native(name, call)


def drained(values: Iterator[Any]) -> list[Any]:
    """The items of an iterator. Raises: Unsupported: there are too many."""
    found = list(itertools.islice(values, _MOST + 1))
    if len(found) > _MOST:
        raise Unsupported(f"over {_MOST} items")
    return found


def _check_small(name: str, args: Sequence[Any]) -> None:
    """Raises: Unsupported: a function of Python would take long, or make much, for these arguments."""
    for each in args:
        if isinstance(each, torch.Tensor):
            too_large = name in _ITERATE and each.ndim > 0 and each.shape[0] > _MOST_PARTS
        elif isinstance(each, int):
            too_large = name in _GROW and abs(each) > _MOST_OF_MATH
        else:
            too_large = isinstance(each, str | list | tuple | dict | range) and len(each) > _MOST
        if too_large:
            raise Unsupported(f"{name} of so large a value")


_ITERATE = frozenset("all any enumerate list map max min reversed sorted sum tuple zip extend".split())
_GROW = frozenset(("pow", "math.factorial", "math.comb", "math.perm", "math.pow", "itertools.repeat"))


def arithmetic(name: str, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The result of a binary operator. Raises: Raised, Unsupported: it is too large, or of values without it."""
    if not all(isinstance(each, _ARITHMETIC) for each in (left, right)):
        raise Unsupported(f"{name} of a {type(left).__name__} and a {type(right).__name__}")
    if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
        return call_torch(f"operator.{name}", function, (left, right), {})
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and (
        (name in ("pow", "ipow") and left.bit_length() * max(right, 0) > _MOST_BITS)
        or (name in ("lshift", "ilshift") and left.bit_length() + right > _MOST_BITS)
        or (name in ("mul", "imul") and left.bit_length() + right.bit_length() > _MOST_BITS)
    ):
        raise Unsupported(f"a number of over {_MOST_BITS} bits")
    for items, count in ((left, right), (right, left)):
        if isinstance(items, str | tuple | list):
            other = len(items) * count if isinstance(count, int) else len(items) + _length(count)
            if other > _MOST:
                raise Unsupported(f"over {_MOST} items")
    try:
        return function(left, right)
    except ERRORS as error:
        raise Raised(f"{type(error).__name__}: {error}") from error


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | tuple | list) else 0


_ARITHMETIC = (bool, int, float, complex, str, tuple, list, dict, torch.Tensor)


def _cdiv(numerator: int, denominator: int) -> int:
    return (numerator + denominator - 1) // denominator


def _next_power_of_2(number: int) -> int:
    """The next power of two, as Triton computes it: 0 for 0, and wrong above 2^32."""
    number -= 1
    for shift in (1, 2, 4, 8, 16, 32):
        number |= number >> shift
    return number + 1


def _described(base: Any, shape: Any, strides: Any, block_shape: Any, padding: str = "zero") -> Descriptor:
    if not isinstance(base, torch.Tensor):
        raise Raised("TypeError: a descriptor of no tensor")
    return Descriptor(base, shape, strides, block_shape, padding)


def _described_whole(tensor: Any, block_shape: Any, padding: str = "zero") -> Descriptor:
    if not isinstance(tensor, torch.Tensor):
        raise Raised("TypeError: a descriptor of no tensor")
    return Descriptor(tensor, tensor.shape, tensor.stride(), block_shape, padding)


def _config(*args: Any, **kwargs: Any) -> Config:
    order = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook", "ir_override")
    given = dict(zip(order, args, strict=False)) | kwargs
    if given.keys() - {each.name for each in fields(Config)} or "kwargs" not in given:
        raise Raised("TypeError: no such arguments of triton.Config")
    return Config(**given)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


_DESCRIPTOR = "triton.tools.tensor_descriptor.TensorDescriptor"
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "triton.cdiv": _cdiv,
    "triton.next_power_of_2": _next_power_of_2,
    "triton.Config": _config,
    "triton.set_allocator": _always(None),
    "triton.language.constexpr": lambda value: value,
    "triton.runtime.driver.active.get_active_torch_device": Device,
    "triton.runtime.driver.active.get_current_target": Target,
    _DESCRIPTOR: _described,
    f"{_DESCRIPTOR}.from_tensor": _described_whole,
    "torch.device": as_device,
    "torch.finfo": torch.finfo,
    "torch.iinfo": torch.iinfo,
    "torch.Size": torch.Size,
    "torch.cuda.is_available": _always(True),
    "torch.cuda.is_bf16_supported": _always(True),
    "torch.cuda.current_device": _always(0),
    "torch.cuda.get_device_properties": _always(Gpu()),
    "torch.cuda.synchronize": _always(None),
    "torch.cuda.empty_cache": _always(None),
    "torch.cuda.set_device": _always(None),
    "dataclasses.field": Default,
    "functools.reduce": functools.reduce,
    "operator.mul": functools.partial(arithmetic, "mul", operator.mul),
    "functools.wraps": _always(Native("functools.wraps", lambda function: function)),
}
# Decorators and contexts that change no value.
MARKS = tables.CONTEXTS.names
_PYTHON = {"math": math, "operator": operator, "itertools": itertools}
_TYPES = {name: getattr(builtins, name) for name in ("bool", "dict", "float", "int", "list", "str", "tuple")}
TYPES: Mapping[str, Any] = {**_TYPES, "torch.Tensor": torch.Tensor}


def builtin(name: str) -> Native | Symbol | None:
    """The built-in function of this name; None if the language has none."""
    if name in tables.BUILTINS.names:
        return guarded(name, getattr(builtins, name))
    return Symbol(name) if name in tables.EXCEPTIONS.names else None


def resolve(path: str) -> Any:
    """The value of an imported path. Raises: Unsupported: the language does not list it."""
    if path in _FUNCTIONS:
        return guarded(path, _FUNCTIONS[path])
    if path == "functools.partial":
        return Symbol(path)
    if path == "torch.version.hip":
        return None  # there is no guest for AMD
    if path in ("torch.Tensor", "torch.FloatTensor", "torch.LongTensor"):
        return Symbol(path)
    head, _, last = path.rpartition(".")
    if path in MARKS or path in tables.LAYERS.names:
        return Symbol(path)
    if path.startswith("torch.ops.aten."):  # lowered rows call operators by these names
        operator: Any = functools.reduce(getattr, path.removeprefix("torch.ops.").split("."), torch.ops)
        return Native(path, functools.partial(_call_torch, path, operator))
    if not tables.is_listed(path):
        if any(name == path or name.startswith(f"{path}.") for name in _MODULES):
            return Symbol(path)
        raise Unsupported(f"the name {path}")
    if head in _PYTHON:
        value = getattr(_PYTHON[head], last)
        return guarded(path, value) if callable(value) else value
    if head in ("torch", "torch.nn.functional"):
        value = getattr(torch if head == "torch" else torch.nn.functional, last, None)
        if isinstance(value, _PLAIN):
            return value
        if callable(value) and not isinstance(value, type):
            return Native(path, functools.partial(_call_torch, path, value))
    if head == "triton.language":
        return getattr(importlib.import_module("triton.language"), last)
    raise Unsupported(f"the name {path}")


def _call_torch(path: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return call_torch(path, function, args, kwargs)


_LISTED = frozenset(name for group in (*tables.GROUPS, tables.CONTEXTS, tables.BASES) for name in group.names)
_MODULES = frozenset(name.rpartition(".")[0] for name in _LISTED | tables.IMPORTS.names) | tables.IMPORTS.names
