"""State that a candidate keeps between calls: all that Python can reach from its module and its file's names."""

from __future__ import annotations

import gc
import hashlib
import warnings
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from triton.runtime.jit import KernelInterface

from ..candidate.launch_log import entries
from ..candidate.module_setup import sha256

_MOST = 20_000  # values that are visited
_TEXT = 80  # characters
_DIGITS = 12  # of a digest
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, torch.dtype, torch.device)
_MANY = (dict, list, tuple, set, frozenset, deque)
_PAUSED = {  # types with a frame that continues later: attributes of the frame, and of what it waits for
    GeneratorType: ("gi_frame", "gi_yieldfrom"),
    CoroutineType: ("cr_frame", "cr_await"),
    AsyncGeneratorType: ("ag_frame", "ag_await"),
}
_CLOSED = (ModuleType, KernelInterface)  # attributes of all, or of the autotuner, are not visited
# Except the functions that the file gives a kernel, which may keep state.
_GIVEN_TO_KERNELS = ("configs", "early_config_prune", "fn", "launch_metadata", "perf_model", "values")


def kept(module: nn.Module, names: Mapping[str, Any], contents: bool) -> dict[str, str]:
    """Reachable values by their place: numbers and text, lengths, layouts of tensors.

    A call that finds the values of an earlier call does what that did. Objects that are not written in Python are
    visited where their type is known (iterators, generators, caches of functions), and else as far as the garbage
    collector knows their references.

    Args:
        contents: add digests of tensors that are no state.
    """
    state = set(map(id, entries(module).values())) if contents else set[int]()
    waiting: list[tuple[str, Any]] = [("self", module)]
    waiting += [(name, value) for name, value in names.items() if not name.startswith("__")]
    found: dict[str, str] = {}
    known: list[Any] = []  # alive, so that no other value gets its id
    ids = set[int]()
    while waiting and len(found) < _MOST:
        where, value = waiting.pop()
        if type(value) in _PLAIN:
            found[where] = _written(value)
        elif id(value) not in ids:
            ids.add(id(value))
            known.append(value)
            found[where] = _text(value, contents and id(value) not in state)
            waiting += [(f"{where}{name}", part) for name, part in _parts(value, str(names.get("__name__")))]
    return found


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The first place where two results of `kept` differ, with both values; "" if none does."""
    if len(after) >= _MOST:
        return f"more than {_MOST} values"
    for where in sorted(before.keys() | after.keys()):
        old, new = before.get(where, "nothing"), after.get(where, "nothing")
        if old != new:
            return f"{where} is {new} in place of {old}"
    return ""


def _written(value: Any) -> str:
    """Text of a plain value, or of a tuple of them: whole, or its beginning and a digest."""
    long = type(value) is int and value.bit_length() > 256  # too long for decimal text
    text = hex(value) if long else repr(value)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} {hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def _label(key: Any, index: int) -> str:
    """Place of an item: its key, if that is plain."""
    plain = type(key) in _PLAIN or (type(key) is tuple and all(type(part) in _PLAIN for part in key))
    return _written(key) if plain else f"{type(key).__name__} {index}"


def _text(value: Any, contents: bool) -> str:
    if isinstance(value, Tensor):
        layout = f"{value.dtype} {list(value.shape)} {list(value.stride())} {value.storage_offset()}"
        layout += " with gradient" if value.requires_grad else ""
        return f"{layout} {sha256(value)[:_DIGITS]}" if contents else layout
    if isinstance(value, torch.Generator):
        return sha256(value.get_state())[:_DIGITS]
    if isinstance(value, _MANY):  # by the base class: the candidate's own class could lie
        kind: Any = next(each for each in _MANY if isinstance(value, each))
        text = f"{type(value).__name__} of {kind.__len__(value)}"
        if isinstance(value, dict):  # the order of keys could encode a number
            ordered: Any = OrderedDict if isinstance(value, OrderedDict) else dict  # each has an order of its own
            labels = [_label(key, index) for index, key in enumerate(ordered.keys(value))]
            text += f" {hashlib.sha256(repr(labels).encode(errors='replace')).hexdigest()[:_DIGITS]}"
        return text
    if isinstance(value, tuple(_PAUSED)) and (frame := _frame(value)) is not None:
        return f"at {frame.f_lasti}"
    if isinstance(value, bytearray):
        return _written(bytes(value))
    if _is_cache(value):
        return f"cache of {value.cache_info().currsize}"  # its keys cannot be read
    if isinstance(value, int | float | complex | str | bytes):
        kind = next(each for each in (int, float, complex, str, bytes) if isinstance(value, each))
        return f"{type(value).__name__} {kind.__repr__(value)[:_TEXT]}"
    return type(value).__name__


def _frame(value: Any) -> Any:
    return getattr(value, _PAUSED[type(value)][0])


def _parts(value: Any, own: str) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with a suffix for its place; `own` is the name of the candidate's module."""
    if isinstance(value, type):
        yield from ((f".{name}", part) for name, part in vars(value).items() if value.__module__ == own)
        return
    if isinstance(value, FunctionType):
        yield from ((f".{name}", getattr(value, name)) for name in ("__defaults__", "__kwdefaults__", "__closure__"))
        yield ".", vars(value)
        return
    if isinstance(value, dict):
        for index, (key, part) in enumerate(dict.items(value)):
            yield f"[{_label(key, index)}]", part
            if type(key) not in _PLAIN:
                yield f"{{{index}}}", key
    elif isinstance(value, list | tuple | deque):
        kind: Any = next(each for each in (list, tuple, deque) if isinstance(value, each))
        yield from ((f"[{index}]", part) for index, part in enumerate(kind.__iter__(value)))
    elif isinstance(value, set | frozenset):
        kind = next(each for each in (set, frozenset) if isinstance(value, each))
        yield from ((f"{{{_label(part, index)}}}", part) for index, part in enumerate(kind.__iter__(value)))
    elif isinstance(value, CellType):
        yield from [("", value.cell_contents)] if value != CellType() else ()
    elif isinstance(value, tuple(_PAUSED)):
        frame = _frame(value)
        yield from ((f".{name}", part) for name, part in (frame.f_locals if frame else {}).items())
        yield ".", getattr(value, _PAUSED[type(value)][1])
    elif isinstance(value, slice):
        yield ".", (value.start, value.stop, value.step)
    elif isinstance(value, BaseException):
        yield ".args", value.args
    elif isinstance(value, Iterator):
        yield from _of_iterator(value)
    elif isinstance(value, Tensor):
        yield ".grad", value.grad if value.is_leaf else None
        yield ".grad_fn", value.grad_fn
    elif isinstance(value, Node):
        yield ".next", value.next_functions
        yield ".metadata", value.metadata
    elif _is_cache(value) or not hasattr(value, "__dict__"):
        yield ".", [each for each in gc.get_referents(value) if each is not type(value)]
    if isinstance(value, KernelInterface):
        yield from ((f".{name}", getattr(value, name)) for name in _GIVEN_TO_KERNELS if name in vars(value))
    if not isinstance(value, _CLOSED):
        yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())
        yield from ((f".{name}", part) for each in type(value).__mro__ for name, part in _slots(value, each))
        if type(value).__module__ == own:
            yield ".class", type(value)


def _slots(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Attributes that a class, also one written in C, keeps in slots outside of the object's dictionary."""
    for name, member in vars(kind).items():
        if type(member) is MemberDescriptorType and kind is not Tensor:
            try:
                yield name, member.__get__(value)
            except AttributeError:  # nothing was set
                continue


def _is_cache(value: Any) -> bool:
    """True if the value is a function's cache."""
    return callable(getattr(type(value), "cache_info", None))


def _of_iterator(value: Any) -> Iterator[tuple[str, Any]]:
    """The position of an iterator, as far as it can be copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            reduced = value.__reduce__()
        except TypeError:
            yield ".", gc.get_referents(value)
            return
    yield ".", reduced[1:] if isinstance(reduced, tuple) else reduced
