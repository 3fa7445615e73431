"""Record one call of a module as a graph of the PyTorch calls in it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..lib.layer_calls import layers_called_by
from ..probing.guarded_call import TooBig
from .layer_arguments import constructor_arguments

_SPACES = (  # where functions are looked up, and how they are written
    ("F", nn.functional),
    ("torch", torch),
    ("torch.linalg", torch.linalg),
    ("torch.special", torch.special),
    ("torch.fft", torch.fft),
)
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "true_divide": "/", "matmul": "@", "pow": "**", "gt": ">",
    "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!=", "floor_divide": "//", "remainder": "%", "__and__": "&",
    "__or__": "|", "__floordiv__": "//", "__mod__": "%", "__pow__": "**", "__truediv__": "/", "__sub__": "-",
    "__mul__": "*", "__add__": "+", "__matmul__": "@", "__eq__": "==", "__ne__": "!=",
    "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
_REVERSED = {"__rsub__": "-", "__rdiv__": "/", "__rtruediv__": "/", "__rpow__": "**", "__radd__": "+", "__rmul__": "*",
             "__rmatmul__": "@"}  # fmt: skip
_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag"})


class Recorder(TorchFunctionMode):
    """Records the calls within the context as `nodes`: JSON objects that refer to earlier ones by `{"node": i}`.

    A layer of `torch.nn` is one node. A value that nothing recorded made is a leaf. Each call has the `span` of the
    innermost expression of `file` that makes it: line, column, last line, last column.
    """

    def __init__(
        self, module: nn.Module, inputs: Sequence[Tensor], names: Sequence[str], most: int, file: str = ""
    ) -> None:
        super().__init__()
        self._file = file
        self.nodes: list[dict[str, Any]] = []
        self._values: list[Any] = []  # of each node; held, so that ids of objects stay unique
        self._place: dict[int, int] = {}  # id of a tensor -> its node
        self._most, self._quiet = most, 0
        self._leaves = {id(t): ("input", name) for t, name in zip(inputs, names, strict=True)}
        self._leaves |= {id(t): ("parameter", name) for name, t in module.named_parameters(remove_duplicate=False)}
        self._leaves |= {id(t): ("buffer", name) for name, t in module.named_buffers(remove_duplicate=False)}
        self._paths = {id(layer): path for path, layer in module.named_modules(remove_duplicate=False)}
        self._arguments = {id(layer): constructor_arguments(layer) for layer in module.modules()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._quiet and _has_tensor(result):
            self._call(func, args, kwargs, result)
        elif not self._quiet and getattr(func, "__name__", "") == "__setitem__":
            self._add("unknown", "__setitem__", args, {}, args[0])
        return result

    @contextmanager
    def with_layers(self) -> Iterator[None]:
        """Record within the context, with each layer of `torch.nn` as one node."""

        def call(original: Any, layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
            arguments = None if self._quiet else self._arguments.get(id(layer))
            if arguments is None:
                return original(layer, *args, **kwargs)
            self._quiet += 1
            try:
                result = original(layer, *args, **kwargs)
            finally:
                self._quiet -= 1
            if _has_tensor(result):
                extra = {"arguments": arguments, "path": self._paths.get(id(layer), "")}
                self._add("layer", type(layer).__name__, args, kwargs, result, extra)
            return result

        with layers_called_by(call), self:
            yield

    def _call(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        name = getattr(func, "__name__", "")
        name = "logsigmoid" if func is nn.functional.logsigmoid else name  # a builtin of another name
        if name == "__get__":
            attribute = getattr(getattr(func, "__self__", None), "__name__", "")
            self._add("attribute" if attribute in _ATTRIBUTES else "unknown", attribute, args, {}, result)
        elif getattr(nn.functional, name, None) is func or (space := _space_of(func, name)):
            place = "F" if getattr(nn.functional, name, None) is func else space
            if name in _INFIX and len(args) == 2 and not kwargs:
                self._add("infix", _INFIX[name], args, {}, result)
            else:
                self._add("function", f"{place}.{name}", args, _given(func, kwargs), result)
        elif name in _REVERSED and len(args) == 2:
            self._add("infix", _REVERSED[name], (args[1], args[0]), {}, result)
        else:
            changes = name.endswith("_") and not name.endswith("__")
            plain = name.removesuffix("_") if changes else re.sub(r"^__i(?!nvert)(\w+__)$", r"__\1", name)
            if plain in _INFIX and len(args) == 2 and not kwargs:
                self._add("infix", _INFIX[plain], args, {}, result)
            elif plain == "neg" and len(args) == 1:
                self._add("prefix", "-", args, {}, result)
            elif plain in ("__invert__", "bitwise_not", "logical_not") and len(args) == 1:
                self._add("prefix", "~", args, {}, result)
            elif plain == "__getitem__":
                self._add("index", "getitem", args, {}, result)
            elif plain.isidentifier() and not plain.startswith("_") and hasattr(Tensor, plain):
                self._add("method", plain, args, kwargs, result)
            else:
                self._add("unknown", name, (), {}, result)

    def _add(
        self,
        kind: str,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        takes = [self._encode(arg) for arg in args]
        named = {key: self._encode(value) for key, value in kwargs.items() if key not in ("inplace", "out", "device")}
        node = {"kind": kind, "name": name, "args": takes, "kwargs": named, **(extra or {})}
        if (frame := self._frame()) is not None:
            node |= {"span": _span(frame)}
            if len(tensors := [arg for arg in args if isinstance(arg, Tensor)]) < 2:
                node |= {"held": [*_names_of(frame.f_locals, tensors), *self._attributes_of(tensors)]}
        self._append(node, result)
        if not isinstance(result, Tensor):
            parent = len(self.nodes) - 1
            for i, item in enumerate(result):
                if isinstance(item, Tensor):
                    self._append({"kind": "item", "name": str(i), "args": [{"node": parent}], "kwargs": {}}, item)

    def _frame(self) -> FrameType | None:
        """The innermost frame of the module's file; None: there is none."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return frame

    def _attributes_of(self, tensors: Sequence[Tensor]) -> list[str]:
        """Attributes that hold one of the tensors."""
        return [self._leaves[id(t)][1].rpartition(".")[2] for t in tensors if id(t) in self._leaves]

    def _append(self, node: dict[str, Any], value: Any) -> int:
        if len(self.nodes) >= self._most:
            raise TooBig(f"more than {self._most} calls")
        if isinstance(value, Tensor):
            node |= {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
            self._place[id(value)] = len(self.nodes)
        self.nodes.append(node)
        self._values.append(value)
        return len(self.nodes) - 1

    def _leaf(self, value: Tensor) -> int:
        kind, name = self._leaves.get(id(value), ("value", ""))
        node: dict[str, Any] = {"kind": kind, "name": name, "args": [], "kwargs": {}}
        if value.numel() and kind == "parameter":
            flat = value.detach().to(torch.float64)
            node |= {"mean": flat.mean().item(), "std": flat.std(correction=0).item()}
        return self._append(node, value)

    def _encode(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            place = self._place.get(id(value))
            return {"node": self._leaf(value) if place is None else place}
        if isinstance(value, tuple | list):
            return {"tuple" if isinstance(value, tuple) else "list": [self._encode(item) for item in value]}
        if isinstance(value, slice):
            return {"slice": [self._encode(part) for part in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"code": "..."}
        if isinstance(value, torch.dtype):
            return {"code": str(value)}
        if value is None or isinstance(value, bool | int | str):
            return {"value": value}
        if isinstance(value, float):
            return {"value": value} if abs(value) < float("inf") else {"code": f'float("{value}")'}
        return {"unknown": type(value).__name__}

    def ranges(self) -> None:
        """Add to each integer tensor the range of its values."""
        for node, value in zip(self.nodes, self._values, strict=True):
            if node.get("dtype") == "int64" and value.numel():
                node |= {"low": int(value.min()), "high": int(value.max()) + 1}


def merged(graphs: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One graph of the first call and of those of the others that take the same path.

    The shape of a node becomes a list of shapes, one for each call. An integer that differs becomes `{"sizes": [...]}`,
    another number `{"numbers": [...]}`.
    """
    first = graphs[0]
    same = [graph for graph in graphs if [_path(node) for node in graph] == [_path(node) for node in first]]
    for nodes in zip(*same, strict=True):
        node = nodes[0]
        node["shapes"] = [each.pop("shape") for each in nodes if "shape" in each]
        for part in ("args", "kwargs"):
            node[part] = _merged([each[part] for each in nodes])
    return first


def _path(node: Mapping[str, Any]) -> tuple[Any, ...]:
    return node["kind"], node["name"], node.get("dtype"), len(node.get("shape", ())), len(node["args"])


def _merged(values: Sequence[Any]) -> Any:
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, dict) and all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        if first.keys() == {"value"} and all(type(value["value"]) is int for value in values):
            return {"sizes": [value["value"] for value in values]}
        if first.keys() == {"value"} and all(type(value["value"]) is float for value in values):
            return {"numbers": [value["value"] for value in values]}
        if first.keys() != {"value"} and first.keys() != {"node"}:
            return {key: _merged([value[key] for value in values]) for key in first}
    if isinstance(first, list) and all(isinstance(value, list) and len(value) == len(first) for value in values):
        return [_merged(items) for items in zip(*values, strict=True)]
    return {"unknown": "differs between calls"}


def _names_of(variables: Mapping[str, Any], tensors: Sequence[Tensor]) -> list[str]:
    """Variables that hold one of the tensors, or any tensor if there are none."""
    held = {name: value for name, value in variables.items() if isinstance(value, Tensor)}
    return [name for name, value in held.items() if not tensors or any(value is tensor for tensor in tensors)]


def _span(frame: FrameType) -> list[int]:
    """Line, column, last line and last column of the expression that a frame is in."""
    line, last_line, column, last_column = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    return [line or 0, column or 0, last_line or 0, last_column or 0]


def _has_tensor(result: Any) -> bool:
    if isinstance(result, tuple | list):
        return any(isinstance(item, Tensor) for item in result)
    return isinstance(result, Tensor)


def _space_of(func: Any, name: str) -> str:
    found = name.removeprefix("linalg_").removeprefix("special_").removeprefix("fft_")
    for space, module in _SPACES[1:]:
        if getattr(module, name, None) is func or (space != "torch" and getattr(module, found, None) is func):
            return space
    return ""


def _given(func: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that differ from their defaults: functions written in Python name them all."""
    defaults = _defaults(func)
    return {
        name: value
        for name, value in kwargs.items()
        if name[0] != "_" and not (name in defaults and type(defaults[name]) is type(value) and defaults[name] == value)
    }


@cache
def _defaults(func: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(func).parameters
    except (TypeError, ValueError):
        return {}
    return {
        name: parameter.default for name, parameter in parameters.items() if parameter.default is not parameter.empty
    }
