"""The state of a constructed module as data: attributes, parameters, buffers and layers, without values of tensors.

The host evaluates `forward` on it. A snapshot is JSON:

    {"root": module, "modules": [{"class", "attributes": [[name, value], ...]}, ...],
     "tensors": [{"storage", "dtype", "shape", "strides", "offset", "host"}, ...], "storages": [bytes, ...],
     "entries": [[name, tensor], ...]}

`host` tensors are in memory that no kernel reaches. A module's `class` is a name of the candidate's file, or the
path of a layer of `torch.nn`. A value is None, a boolean, an integer, a string, or an object of one key:
`float` (hexadecimal), `tuple`, `list`, `dict` (pairs), `size`, `dtype`, `device`, `tensor`, `module`, `record`
(class and fields), `global` (a function or class of the file) or `other` (the name of a type that is no data).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import KernelInterface

from .launch_log import entries

_MAX_VALUES, _MAX_DEPTH = 100_000, 40  # beyond which values are left out
_HOOKS = frozenset(name for name in vars(nn.Module()) if name not in ("_parameters", "_buffers", "_modules"))


def take_snapshot(module: nn.Module) -> dict[str, Any]:
    """The state of a module, see above."""
    snapshot = _Snapshot(type(module).__module__)
    root = snapshot.value(module)["module"]
    named = [[name, snapshot.value(tensor)["tensor"]] for name, tensor in entries(module).items()]
    return {
        "root": root,
        "modules": snapshot.modules,
        "tensors": snapshot.tensors,
        "storages": [storage.nbytes() for storage in snapshot.storages.values()],
        "entries": named,
    }


class _Snapshot:
    def __init__(self, namespace: str) -> None:
        self._namespace = namespace  # name of the candidate's module
        self.modules: list[dict[str, Any]] = []
        self.tensors: list[dict[str, Any]] = []
        self.storages: dict[int, torch.UntypedStorage] = {}
        self._known: dict[int, tuple[Any, dict[str, int]]] = {}  # by id, with the object, so that it stays alive
        self._count = self._depth = 0

    def value(self, value: Any) -> Any:
        self._count += 1
        if self._count > _MAX_VALUES or self._depth > _MAX_DEPTH:
            return {"other": "value of too many"}
        self._depth += 1
        try:
            return self._described(value)
        finally:
            self._depth -= 1

    def _described(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if id(value) in self._known:
            return self._known[id(value)][1]
        match value:
            case float():
                return {"float": value.hex()}
            case Tensor():
                return self._tensor(value)
            case nn.Module():
                return self._module(value)
            case torch.Size():
                return {"size": [*value]}
            case torch.dtype():
                return {"dtype": str(value).removeprefix("torch.")}
            case torch.device():
                return {"device": [value.type, value.index]}
            case tuple() if hasattr(value, "_fields") and self._is_own(type(value)):
                return {"record": [type(value).__name__, self._pairs(dict(zip(value._fields, value, strict=True)))]}
            case tuple() | list() if type(value) in (tuple, list):
                return {type(value).__name__: [self.value(each) for each in value]}
            case dict() if type(value) is dict:
                return {"dict": [[self.value(key), self.value(each)] for key, each in value.items()]}
        function = value
        while isinstance(function, KernelInterface | InterpretedFunction):  # a kernel, or its tuner
            function = function.fn
        if isinstance(function, FunctionType | type) and self._is_own(function):
            return {"global": function.__name__}
        if self._is_own(type(value)) and hasattr(value, "__dict__"):
            return {"record": [type(value).__name__, self._pairs(vars(value))]}
        return {"other": type(value).__name__}

    def _is_own(self, value: FunctionType | type) -> bool:
        """True for a function or class that stands at the top of the candidate's file."""
        return value.__module__ == self._namespace and value.__qualname__.isidentifier()

    def _pairs(self, values: dict[str, Any]) -> list[list[Any]]:
        return [[name, self.value(value)] for name, value in values.items()]

    def _tensor(self, tensor: Tensor) -> dict[str, int]:
        storage = tensor.untyped_storage()
        self.storages.setdefault(storage._cdata, storage)
        self.tensors.append(
            {
                "storage": [*self.storages].index(storage._cdata),
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": [*tensor.shape],
                "strides": [*tensor.stride()],
                "offset": tensor.storage_offset(),
                "host": tensor.device.type == "cpu",
            }
        )
        return self._remember(tensor, {"tensor": len(self.tensors) - 1})

    def _module(self, module: nn.Module) -> dict[str, int]:
        kind = type(module)
        name = kind.__name__ if self._is_own(kind) else f"torch.nn.{kind.__name__}"
        known = (self._is_own(kind) or getattr(nn, kind.__name__, None) is kind) and not _has_another_call(module)
        described: dict[str, Any] = {"class": name if known else ""}
        self.modules.append(described)
        place = self._remember(module, {"module": len(self.modules) - 1})
        values = {name: value for name, value in vars(module).items() if name not in _HOOKS}
        held = [values.pop(name, {}) for name in ("_parameters", "_buffers", "_modules")]
        described["attributes"] = self._pairs({**values, **{n: v for each in held for n, v in each.items()}})
        described["layers"] = [*held[2]]
        return place

    def _remember(self, value: Any, place: dict[str, int]) -> dict[str, int]:
        self._known[id(value)] = value, place
        return place


def _has_another_call(module: nn.Module) -> bool:
    """True for a module that a call of it does not run by its class alone: with hooks, or a `forward` of its own."""
    hooks = [hook for name, each in vars(module).items() if name.endswith("_hooks") for hook in (each or {}).values()]
    return "forward" in vars(module) or any(not str(hook.__module__).startswith("torch.") for hook in hooks)
