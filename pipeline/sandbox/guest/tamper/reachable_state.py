"""What a candidate keeps between calls: all that Python can reach from its module and from its file's names."""

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

_MOST = 20_000  # values that are looked at
_TEXT = 80  # characters
_DIGITS = 12  # of a digest
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, torch.dtype, torch.device)
_MANY = (dict, list, tuple, set, frozenset, deque)
_PAUSED = {  # what has a frame that goes on later: the frame's name, and that of what it waits for
    GeneratorType: ("gi_frame", "gi_yieldfrom"),
    CoroutineType: ("cr_frame", "cr_await"),
    AsyncGeneratorType: ("ag_frame", "ag_await"),
}
_CLOSED = (ModuleType, KernelInterface)  # not looked into: what is in there is for all, or for the tuner
# But what the file gives a kernel beside its code: functions, which may hold on to something.
_GIVEN_TO_KERNELS = ("configs", "early_config_prune", "fn", "launch_metadata", "perf_model", "values")


def kept(module: nn.Module, names: Mapping[str, Any], contents: bool) -> dict[str, str]:
    """What is kept, by where: numbers and text, lengths, layouts of tensors; with `contents` digests of those that are
    no state, too.

    Two calls of which the second finds what the first found do the same. What is in objects that are not written in
    Python is seen where they are known (iterators, generators, caches of functions), and else as far as the garbage
    collector knows what they hold.
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
    """The first place where two of them differ, and what stands there; "" if none does."""
    if len(after) >= _MOST:
        return f"more than {_MOST} values"
    for where in sorted(before.keys() | after.keys()):
        old, new = before.get(where, "nothing"), after.get(where, "nothing")
        if old != new:
            return f"{where} is {new} in place of {old}"
    return ""


def _written(value: Any) -> str:
    """A plain value, or a tuple of such: whole, or its beginning and a digest."""
    long = type(value) is int and value.bit_length() > 256  # has no decimal text, if it is too long
    text = hex(value) if long else repr(value)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} {hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def _label(key: Any, index: int) -> str:
    """Where an item is: by its key, if that is plain."""
    plain = type(key) in _PLAIN or (type(key) is tuple and all(type(part) in _PLAIN for part in key))
    return _written(key) if plain else f"{type(key).__name__} {index}"


def _text(value: Any, contents: bool) -> str:
    if isinstance(value, Tensor):
        layout = f"{value.dtype} {list(value.shape)} {list(value.stride())} {value.storage_offset()}"
        layout += " with gradient" if value.requires_grad else ""
        return f"{layout} {sha256(value)[:_DIGITS]}" if contents else layout
    if isinstance(value, torch.Generator):
        return sha256(value.get_state())[:_DIGITS]
    if isinstance(value, _MANY):  # asked as what they are: a class of the candidate's could say otherwise
        kind: Any = next(each for each in _MANY if isinstance(value, each))
        text = f"{type(value).__name__} of {kind.__len__(value)}"
        if isinstance(value, dict):  # in an order that could be a number
            ordered: Any = OrderedDict if isinstance(value, OrderedDict) else dict  # each knows its own order
            labels = [_label(key, index) for index, key in enumerate(ordered.keys(value))]
            text += f" {hashlib.sha256(repr(labels).encode(errors='replace')).hexdigest()[:_DIGITS]}"
        return text
    if isinstance(value, tuple(_PAUSED)) and (frame := _frame(value)) is not None:
        return f"at {frame.f_lasti}"
    if isinstance(value, bytearray):
        return _written(bytes(value))
    if _is_cache(value):
        return f"cache of {value.cache_info().currsize}"  # what it was asked for, nobody can ask
    if isinstance(value, int | float | complex | str | bytes):
        kind = next(each for each in (int, float, complex, str, bytes) if isinstance(value, each))
        return f"{type(value).__name__} {kind.__repr__(value)[:_TEXT]}"
    return type(value).__name__


def _frame(value: Any) -> Any:
    return getattr(value, _PAUSED[type(value)][0])


def _parts(value: Any, own: str) -> Iterator[tuple[str, Any]]:
    """What is in a value, with what to write behind its name; `own` is the name of the candidate's module."""
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
    """What its class, one written in C too, keeps in an object beside the attributes in its dictionary."""
    for name, member in vars(kind).items():
        if type(member) is MemberDescriptorType and kind is not Tensor:
            try:
                yield name, member.__get__(value)
            except AttributeError:  # nothing was set
                continue


def _is_cache(value: Any) -> bool:
    """Of a function."""
    return callable(getattr(type(value), "cache_info", None))


def _of_iterator(value: Any) -> Iterator[tuple[str, Any]]:
    """Where it stands, as far as it can be copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            reduced = value.__reduce__()
        except TypeError:
            yield ".", gc.get_referents(value)
            return
    yield ".", reduced[1:] if isinstance(reduced, tuple) else reduced
