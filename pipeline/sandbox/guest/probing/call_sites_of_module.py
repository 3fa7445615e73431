"""What a module gets from those who use it: its constructor's arguments, and those of a call.

They are the examples in its docstrings, and another module that makes it. This one, its user, is constructed and called
as any module that is probed; its own call need not succeed.
"""

from __future__ import annotations

import doctest
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from ..lib.load_source import load_source
from .call_search import Caller, search
from .constructor_search import Constructor
from .forward import starts
from .guarded_call import Failure, TooBig, Unfit, attempt, parameter_cap
from .guess import LAYOUTS, MAX_ELEMENTS, SIZES, Arg, Guess, ListArg, PlainArg, SizesArg, TensorArg
from .parameter_values import config
from .parameters import Input, forward_inputs
from .source_hints import Source

_NAME = "user"
_CONSTRUCTIONS = 3  # of the user
_WORK = 30  # calls of each of them, see `search`
_SIGHTS = 4
_ITEMS = 8  # of a list that is written down


class Unknown(Exception):
    """A value that cannot be given by hand."""


@dataclass(slots=True)
class Sight:
    """An instance as it was made, and the first call of it."""

    made: dict[str, str] = field(default_factory=dict)  # parameter -> source of its value
    called: dict[str, Arg] = field(default_factory=dict)  # parameter of forward -> what it got
    sizes: dict[str, int] = field(default_factory=dict)  # symbol -> size
    works: bool = False

    def guess(self, inputs: Sequence[Input]) -> Guess | None:
        """The call, with positional arguments; None if no call was seen."""
        last = max((i for i, item in enumerate(inputs) if item.name in self.called), default=-1)
        args: list[Arg] = []
        for item in inputs[: last + 1]:
            if item.name not in self.called and not isinstance(item.default, bool | int | float | str | None):
                return None
            args.append(self.called.get(item.name, PlainArg(item.default)))
        return Guess(tuple(args), tuple(sorted({**SIZES[0], **self.sizes}.items()))) if args else None


def examples(code: str, name: str, entry_point: str, limit: int, namespace: Mapping[str, Any]) -> list[Sight]:
    """How the docstrings of the class `entry_point` of `code`, which say `name`, make and call it: see `sights`."""
    loaded, _ = attempt(lambda: load_source(code, _NAME), "") if ">>>" in code else (None, None)
    cls = vars(loaded).get(entry_point) if loaded is not None else None
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        return []
    told = [item.__doc__ or "" for item in (cls, cls.__init__, cls.forward)]
    shown, _ = attempt(lambda: [one.source for text in told for one in doctest.DocTestParser().get_examples(text)], "")
    names = {**vars(loaded), "torch": torch, "nn": nn, "F": nn.functional, name: cls}
    with _watched(cls, namespace) as seen:
        for source in shown or ():
            try:
                with parameter_cap(limit):
                    attempt(partial(exec, source, names), "")  # an import that fails is of what is at hand already
            except TooBig:
                break
            if any(sight.works for sight in seen):
                break
    return _telling(seen)


def sights(code: str, name: str, entry_point: str, limit: int, namespace: Mapping[str, Any]) -> list[Sight]:
    """How the class `entry_point` of `code` makes and calls its class `name`, those that work first.

    Args:
        limit: on the elements of parameters and buffers of the user.
        namespace: of the module that is to be made in the same way.
    """
    loaded, _ = attempt(lambda: load_source(code, _NAME), "")
    cls = vars(loaded).get(name) if loaded is not None else None
    if loaded is None or not (isinstance(cls, type) and issubclass(cls, nn.Module)) or entry_point not in vars(loaded):
        return []
    source = Source(code)
    constructor = Constructor(vars(loaded), entry_point, source, str(loaded.__file__), limit)
    with _watched(cls, namespace) as seen:
        for found in islice(constructor.constructions(), _CONSTRUCTIONS):
            if isinstance(found, Failure):
                continue
            try:
                inputs = forward_inputs(found.module, lambda item: source.usage(entry_point, "forward", item))
                begin = starts(found.module, inputs, found.values)
                search(Caller(found.module, constructor.file), begin, {}, lambda guess: guess, _WORK)
            except Unfit:
                break
            if any(sight.works for sight in seen):
                break
    return _telling(seen)


def _telling(seen: Sequence[Sight]) -> list[Sight]:
    unique = list({str((sight.made, sight.called, sight.sizes)): sight for sight in seen}.values())
    return sorted(unique, key=lambda sight: (not sight.works, not sight.called))[:_SIGHTS]


@contextmanager
def _watched(cls: type[nn.Module], namespace: Mapping[str, Any]) -> Iterator[list[Sight]]:
    """Takes down each instance of `cls` itself that is made inside, and the first call of each that works."""
    seen: list[Sight] = []
    instances: dict[int, tuple[nn.Module, Sight]] = {}  # the instance is held, so that its id stays its own
    make, call = cls.__init__, cls.forward

    def __init__(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls and len(seen) < 64:
            sight = Sight(_made(make, self, args, kwargs, namespace))
            seen.append(sight)
            instances[id(self)] = self, sight
        make(self, *args, **kwargs)

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        _, sight = instances.get(id(self), (self, None))
        if sight is not None and not sight.works:
            sight.called, sight.sizes = _called(call, self, args, kwargs)
        result = call(self, *args, **kwargs)
        if sight is not None:
            sight.works |= bool(sight.called)
        return result

    own = {name: vars(cls)[name] for name in ("__init__", "forward") if name in vars(cls)}
    __init__.__wrapped__, forward.__wrapped__ = make, call  # type: ignore[attr-defined]
    cls.__init__, cls.forward = __init__, forward  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        for name in ("__init__", "forward"):
            if name in own:
                setattr(cls, name, own[name])
            else:
                delattr(cls, name)


def _bound(function: Any, self: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """Parameter -> value, of those that are named; empty if that is not all."""
    try:
        bound = inspect.signature(function).bind(self, *args, **kwargs)
    except (TypeError, ValueError):
        return {}
    kinds = {name: parameter.kind for name, parameter in bound.signature.parameters.items()}
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: value for name, value in list(bound.arguments.items())[1:] if kinds[name] in named}


def _made(make: Any, self: nn.Module, args: Any, kwargs: Any, namespace: Mapping[str, Any]) -> dict[str, str]:
    made = {}
    for name, value in _bound(make, self, args, kwargs).items():
        try:
            made[name] = source_of(value, namespace)
        except Unknown:  # its default may do
            continue
    return made


def source_of(value: Any, namespace: Mapping[str, Any]) -> str:
    """Python source of the value, for a file with `torch`, `nn` and the names of `namespace`.

    Raises:
        Unknown: there is none.
    """
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, tuple | list) and len(value) <= _ITEMS:
        items = ", ".join(source_of(item, namespace) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if type(value) is dict and len(value) <= _ITEMS and all(isinstance(key, str) for key in value):
        return f"{{{', '.join(f'{key!r}: {source_of(item, namespace)}' for key, item in value.items())}}}"
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, nn.Module) and type(value).__module__.startswith("torch.nn.") and not list(value.children()):
        return f"nn.{value!r}" if "\n" not in repr(value) else f"nn.{type(value).__name__}()"
    if type(value).__name__ == "Config" and type(value).__mro__[1:] == (object,) and not vars(value):
        return config({key: source_of(item, namespace) for key, item in vars(type(value)).items() if key[0] != "_"})
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        if getattr(nn, name, None) is value:
            return f"nn.{name}"
        if getattr(nn.functional, name, None) is value:
            return f"nn.functional.{name}"
        if callable(namespace.get(name)) and type(namespace[name]) is type(value):
            return name
    raise Unknown(type(value).__name__)


def _called(call: Any, self: nn.Module, args: Any, kwargs: Any) -> tuple[dict[str, Arg], dict[str, int]]:
    """(what each parameter of forward got, sizes of the symbols in it); empty if some of it is unknown."""
    sizes: dict[str, int] = {}
    called: dict[str, Arg] = {}
    for name, value in _bound(call, self, args, kwargs).items():
        try:
            called[name] = _arg(name, value, sizes)
        except Unknown:
            return {}, {}
    return called, sizes


def _arg(name: str, value: Any, sizes: dict[str, int]) -> Arg:
    if isinstance(value, Tensor):
        return _tensor(name, value, sizes)
    if value is None or isinstance(value, bool | int | float | str):
        return PlainArg(value)
    if isinstance(value, tuple | list) and value and all(type(item) is int and item > 0 for item in value):
        return SizesArg(tuple(_symbol("C", item, sizes) for item in value))
    if isinstance(value, tuple | list) and value and len(value) <= _ITEMS:
        return ListArg(tuple(_tensor(f"{name}{i}", item, sizes) for i, item in enumerate(value)))
    if type(value) is dict and value and len(value) <= _ITEMS and all(isinstance(key, str) for key in value):
        return ListArg(tuple(_tensor(key, item, sizes) for key, item in value.items()), tuple(value))
    raise Unknown(type(value).__name__)


def _tensor(name: str, value: Any, sizes: dict[str, int]) -> TensorArg:
    if not isinstance(value, Tensor) or value.dim() not in (0, *LAYOUTS) or not 0 < value.numel() <= MAX_ELEMENTS:
        raise Unknown(type(value).__name__)
    layout = LAYOUTS[value.dim()][0] if value.dim() else ()
    dims = tuple(_symbol(letter, size, sizes) for letter, size in zip(layout, value.shape, strict=True))
    if value.dtype is torch.bool:
        return TensorArg(name, dims, "bool")
    if value.is_floating_point():
        return TensorArg(name, dims)
    if value.is_complex():
        raise Unknown(str(value.dtype))
    return TensorArg(name, dims, "int64", int(value.min()), int(value.max()) + 1)


def _symbol(letter: str, size: int, sizes: dict[str, int]) -> str:
    """The symbol of this size; what has one size is taken for one dimension."""
    known = next((symbol for symbol, other in sizes.items() if other == size), None)
    if known is None:
        known = letter if letter not in sizes else f"{letter}{size}"
        sizes[known] = size
    return known
