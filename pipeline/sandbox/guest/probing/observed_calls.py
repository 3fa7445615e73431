"""Record how other code constructs and calls a module: the examples in its docstrings, or a module that contains it.

The containing module, the user, is constructed and called like any probed module. Its own call need not succeed.
"""

from __future__ import annotations

import contextlib
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
from .first_guesses import first_guesses
from .guarded_call import Failure, TooBig, Unfit, attempt, parameter_cap
from .guess import LAYOUTS, MAX_ELEMENTS, SIZES, Arg, Guess, ListArg, PlainArg, SizesArg, TensorArg
from .parameter_values import config
from .parameters import Input, forward_inputs
from .source_hints import Source

_NAME = "user"
_MAX_CONSTRUCTIONS = 3  # of the user
_MAX_CALLS = 30  # of each constructed user
_MAX_OBSERVED = 4
_MAX_INSTANCES = 64
_MAX_ITEMS = 32  # of a list that is written as source


class NotRepresentable(Exception):
    """A value cannot be written as source, or cannot be an argument of a guess."""


@dataclass(slots=True)
class ObservedCall:
    """The constructor arguments of one instance, and the arguments of the instance's first call."""

    init_args: dict[str, str] = field(default_factory=dict)  # parameter -> source of its value
    args: dict[str, Arg] = field(default_factory=dict)  # parameter of forward -> its argument
    sizes: dict[str, int] = field(default_factory=dict)  # symbol -> size
    succeeded: bool = False

    def guess(self, inputs: Sequence[Input]) -> Guess | None:
        """The call with positional arguments; None if no call was recorded."""
        last = max((i for i, item in enumerate(inputs) if item.name in self.args), default=-1)
        args: list[Arg] = []
        for item in inputs[: last + 1]:
            if item.name not in self.args and not isinstance(item.default, bool | int | float | str | None):
                return None
            args.append(self.args.get(item.name, PlainArg(item.default)))
        return Guess(tuple(args), tuple(sorted({**SIZES[0], **self.sizes}.items()))) if args else None


def calls_in_docstrings(
    code: str, name: str, entry_point: str, limit: int, namespace: Mapping[str, Any]
) -> list[ObservedCall]:
    """Run the docstring examples of the class `entry_point` of `code`, and record how they construct and call it.

    Args:
        name: name of the class in the examples.
        limit: largest number of elements of parameters and buffers.
        namespace: names that `init_args` may use.
    """
    loaded, _ = attempt(lambda: load_source(code, _NAME), "") if ">>>" in code else (None, None)
    cls = vars(loaded).get(entry_point) if loaded is not None else None
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        return []
    docstrings = [item.__doc__ or "" for item in (cls, cls.__init__, cls.forward)]
    parser = doctest.DocTestParser()
    sources, _ = attempt(lambda: [one.source for text in docstrings for one in parser.get_examples(text)], "")
    names = {**vars(loaded), "torch": torch, "nn": nn, "F": nn.functional, name: cls}
    with _recorded(cls, namespace) as calls:
        for source in sources or ():
            try:
                with parameter_cap(limit):
                    attempt(partial(exec, source, names), "")  # an import may fail: its names are there already
            except TooBig:
                break
            if any(call.succeeded for call in calls):
                break
    return _best(calls)


def calls_in_user(
    code: str, name: str, entry_point: str, limit: int, namespace: Mapping[str, Any]
) -> list[ObservedCall]:
    """Call the class `entry_point` of `code`, and record how it constructs and calls its class `name`.

    Args:
        limit: largest number of elements of parameters and buffers of the user.
        namespace: names that `init_args` may use.
    """
    loaded, _ = attempt(lambda: load_source(code, _NAME), "")
    cls = vars(loaded).get(name) if loaded is not None else None
    if loaded is None or not (isinstance(cls, type) and issubclass(cls, nn.Module)) or entry_point not in vars(loaded):
        return []
    source = Source(code)
    constructor = Constructor(vars(loaded), entry_point, source, str(loaded.__file__), limit)
    with _recorded(cls, namespace) as calls:
        for found in islice(constructor.constructions(), _MAX_CONSTRUCTIONS):
            if isinstance(found, Failure):
                continue
            try:
                inputs = forward_inputs(found.module, partial(source.usage, entry_point, "forward"))
                starts = first_guesses(found.module, inputs, found.values)
                search(Caller(found.module, constructor.file), starts, {}, lambda guess: guess, _MAX_CALLS)
            except Unfit:
                break
            if any(call.succeeded for call in calls):
                break
    return _best(calls)


def calls_with_own_inputs(code: str, entry_point: str, limit: int, namespace: Mapping[str, Any]) -> list[ObservedCall]:
    """Record the call of the class `entry_point` of `code` with its `get_init_inputs()` and `get_inputs()`.

    Args:
        limit: largest number of elements of parameters and buffers.
        namespace: names that `init_args` may use.
    """
    loaded, _ = attempt(lambda: load_source(code, _NAME), "")
    names = vars(loaded) if loaded is not None else {}
    cls = names.get(entry_point)
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        return []
    with _recorded(cls, namespace) as calls, contextlib.suppress(TooBig), parameter_cap(limit), torch.no_grad():
        attempt(lambda: cls(*names["get_init_inputs"]()).eval()(*names["get_inputs"]()), "")
    return _best(calls)


def _best(calls: Sequence[ObservedCall]) -> list[ObservedCall]:
    """Distinct calls: those that succeeded come first, then those with arguments of forward."""
    unique = list({str((call.init_args, call.args, call.sizes)): call for call in calls}.values())
    return sorted(unique, key=lambda call: (not call.succeeded, not call.args))[:_MAX_OBSERVED]


@contextmanager
def _recorded(cls: type[nn.Module], namespace: Mapping[str, Any]) -> Iterator[list[ObservedCall]]:
    """Record each construction of `cls` itself within the context, and the first successful call of each instance."""
    calls: list[ObservedCall] = []
    instances: dict[int, tuple[nn.Module, ObservedCall]] = {}  # holds the instance, so that its id stays unique
    original_init, original_forward = cls.__init__, cls.forward

    def __init__(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls and len(calls) < _MAX_INSTANCES:
            call = ObservedCall(_init_args(_bound(original_init, self, args, kwargs), namespace))
            calls.append(call)
            instances[id(self)] = self, call
        original_init(self, *args, **kwargs)

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        _, call = instances.get(id(self), (self, None))
        if call is not None and not call.succeeded:
            call.args, call.sizes = _forward_args(_bound(original_forward, self, args, kwargs))
        result = original_forward(self, *args, **kwargs)
        if call is not None:
            call.succeeded |= bool(call.args)
        return result

    own = {name: vars(cls)[name] for name in ("__init__", "forward") if name in vars(cls)}
    __init__.__wrapped__, forward.__wrapped__ = original_init, original_forward  # type: ignore[attr-defined]
    cls.__init__, cls.forward = __init__, forward  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        for name in ("__init__", "forward"):
            if name in own:
                setattr(cls, name, own[name])
            else:
                delattr(cls, name)


def _bound(function: Any, self: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """Parameter -> argument, without `*args` and `**kwargs`; empty if the arguments do not fit."""
    try:
        bound = inspect.signature(function).bind(self, *args, **kwargs)
    except (TypeError, ValueError):
        return {}
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    kinds = {name: parameter.kind for name, parameter in bound.signature.parameters.items()}
    return {name: value for name, value in list(bound.arguments.items())[1:] if kinds[name] not in variadic}


def _init_args(bound: Mapping[str, Any], namespace: Mapping[str, Any]) -> dict[str, str]:
    sources = {}
    for name, value in bound.items():
        with contextlib.suppress(NotRepresentable):  # its default may do
            sources[name] = source_of(value, namespace)
    return sources


def source_of(value: Any, namespace: Mapping[str, Any]) -> str:
    """Python source of a value. It may use `torch`, `nn` and the names of `namespace`.

    Raises:
        NotRepresentable: there is none.
    """
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, tuple | list) and len(value) <= _MAX_ITEMS:
        items = ", ".join(source_of(item, namespace) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if type(value) is dict and len(value) <= _MAX_ITEMS and all(isinstance(key, str) for key in value):
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
    raise NotRepresentable(type(value).__name__)


def _forward_args(bound: Mapping[str, Any]) -> tuple[dict[str, Arg], dict[str, int]]:
    """(parameter -> argument, symbol -> size); empty if an argument is not representable."""
    sizes: dict[str, int] = {}
    try:
        return {name: _arg(name, value, sizes) for name, value in bound.items()}, sizes
    except NotRepresentable:
        return {}, {}


def _arg(name: str, value: Any, sizes: dict[str, int]) -> Arg:
    if isinstance(value, Tensor):
        return _tensor(name, value, sizes)
    if value is None or isinstance(value, bool | int | float | str):
        return PlainArg(value)
    if isinstance(value, tuple | list) and value and all(type(item) is int and item > 0 for item in value):
        return SizesArg(tuple(_symbol("C", item, sizes) for item in value))
    if isinstance(value, tuple | list) and value and len(value) <= _MAX_ITEMS:
        return ListArg(tuple(_tensor(f"{name}{i}", item, sizes) for i, item in enumerate(value)))
    if type(value) is dict and value and len(value) <= _MAX_ITEMS and all(isinstance(key, str) for key in value):
        return ListArg(tuple(_tensor(key, item, sizes) for key, item in value.items()), tuple(value))
    raise NotRepresentable(type(value).__name__)


def _tensor(name: str, value: Any, sizes: dict[str, int]) -> TensorArg:
    if not isinstance(value, Tensor) or value.dim() not in (0, *LAYOUTS) or not 0 < value.numel() <= MAX_ELEMENTS:
        raise NotRepresentable(type(value).__name__)
    layout = LAYOUTS[value.dim()][0] if value.dim() else ()
    dims = tuple(_symbol(letter, size, sizes) for letter, size in zip(layout, value.shape, strict=True))
    if value.dtype is torch.bool:
        return TensorArg(name, dims, "bool")
    if value.is_floating_point():
        return TensorArg(name, dims)
    if value.is_complex():
        raise NotRepresentable(str(value.dtype))
    return TensorArg(name, dims, "int64", int(value.min()), int(value.max()) + 1)


def _symbol(letter: str, size: int, sizes: dict[str, int]) -> str:
    """The symbol of this size. Equal sizes are taken for one dimension."""
    known = next((symbol for symbol, other in sizes.items() if other == size), None)
    if known is None:
        known = letter if letter not in sizes else f"{letter}{size}"
        sizes[known] = size
    return known
