"""What a candidate keeps between calls: all that Python can reach from its module and from its file's names."""

from __future__ import annotations

import functools
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from .session import entries
from .subject import sha256

_MOST = 20_000  # values that are looked at
_TEXT = 80  # characters
_DIGITS = 12  # of a digest
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, torch.dtype, torch.device)
_THEIRS = ("torch", "triton")  # whose objects are not looked into, but for modules and tensors


def kept(module: nn.Module, names: Mapping[str, Any], contents: bool) -> dict[str, str]:
    """What is kept, by where: numbers and text, lengths, layouts of tensors; with `contents` digests of those that are
    no state, too.

    Two calls of which the second finds what the first found do the same. What is in objects that are not written in
    Python is seen where they are known: iterators, generators, caches of functions.
    """
    state = set(map(id, entries(module).values())) if contents else set[int]()
    waiting: list[tuple[str, Any]] = [("self", module)]
    waiting += [(name, value) for name, value in names.items() if not name.startswith("__")]
    found: dict[str, str] = {}
    known: list[Any] = []  # alive, so that no other value gets its id
    ids = set[int]()
    while waiting and len(found) < _MOST:
        where, value = waiting.pop()
        if isinstance(value, _PLAIN):
            found[where] = repr(value)[:_TEXT]
        elif id(value) not in ids:
            ids.add(id(value))
            known.append(value)
            found[where] = _text(value, contents and id(value) not in state)
            waiting += [(f"{where}{name}", part) for name, part in _parts(value, str(names.get("__name__")))]
    return found


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The first place where two of them differ, and what stands there; "" if none does."""
    for where in sorted(before.keys() | after.keys()):
        old, new = before.get(where, "nothing"), after.get(where, "nothing")
        if old != new:
            return f"{where} is {new} in place of {old}"
    return ""


def _text(value: Any, contents: bool) -> str:
    if isinstance(value, Tensor):
        layout = f"{value.dtype} {list(value.shape)} {list(value.stride())} {value.storage_offset()}"
        return f"{layout} {sha256(value)[:_DIGITS]}" if contents else layout
    if isinstance(value, torch.Generator):
        return sha256(value.get_state())[:_DIGITS]
    if isinstance(value, dict | list | tuple | set | frozenset | deque):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, GeneratorType) and value.gi_frame is not None:
        return f"at {value.gi_frame.f_lasti}"
    if callable(getattr(type(value), "cache_info", None)):
        return f"cache of {value.cache_info().currsize}"  # what it was asked for, nobody can ask
    return type(value).__name__


def _parts(value: Any, own: str) -> Iterator[tuple[str, Any]]:
    """What is in a value, with what to write behind its name; `own` is the name of the candidate's module."""
    if isinstance(value, Mapping):
        yield from ((f"[{repr(key)[:_TEXT]}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((f"[{repr(part)[:_TEXT]}]", part) for part in value if isinstance(part, _PLAIN))
    elif isinstance(value, CellType):
        yield from [("", value.cell_contents)] if value != CellType() else ()
    elif isinstance(value, FunctionType):
        yield from ((f".{name}", getattr(value, name)) for name in ("__defaults__", "__kwdefaults__", "__closure__"))
        yield ".", vars(value)
    elif isinstance(value, MethodType):
        yield from ((".__self__", value.__self__), (".__func__", value.__func__))
    elif isinstance(value, functools.partial):
        yield from (("()", value.func), ("(", value.args), (")", value.keywords))
    elif isinstance(value, GeneratorType):
        yield from ((f".{name}", part) for name, part in (value.gi_frame.f_locals if value.gi_frame else {}).items())
    elif isinstance(value, type):
        yield from ((f".{name}", part) for name, part in vars(value).items() if value.__module__ == own)
    elif isinstance(value, BaseException):
        yield from ((".args", value.args), (".", vars(value)))
    elif isinstance(value, Iterator):
        yield from _of_iterator(value)
    elif isinstance(value, nn.Module | Tensor) or not (isinstance(value, ModuleType) or _is_theirs(value)):
        yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())
        slots = [name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())]
        yield from ((f".{name}", getattr(value, name, None)) for name in slots if not name.startswith("__"))


def _is_theirs(value: Any) -> bool:
    return type(value).__module__.split(".")[0] in _THEIRS


def _of_iterator(value: Any) -> Iterator[tuple[str, Any]]:
    """Where it stands, as far as it can be copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            reduced = value.__reduce__()
        except TypeError:
            return
    yield ".", reduced[1:] if isinstance(reduced, tuple) else reduced
