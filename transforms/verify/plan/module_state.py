"""Read a snapshot of a module, which a guest claims (`guest/candidate/snapshot.py`), as values of the evaluator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect

from .evaluator import Evaluator
from .recording import mark_on_host
from .values import Class, Device, Foreign, Layer, Record

_MAX_NUMBER = 1 << 40


class Snapshot:
    """The module under test, with its tensors on the device `meta`."""

    def __init__(self, claim: Any, evaluator: Evaluator) -> None:
        """Raises: MalformedReply, Raised, Unsupported."""
        fields = expect(claim, dict)
        self._evaluator = evaluator
        sizes = [_number(each) for each in expect(fields.get("storages"), list)]
        storages = [torch.empty(size, dtype=torch.uint8, device="meta") for size in sizes]
        self.tensors = [_tensor(each, storages) for each in expect(fields.get("tensors"), list)]
        claims = [expect(each, dict) for each in expect(fields.get("modules"), list)]
        paths = [expect(each.get("class"), str) for each in claims]
        self._layers = [Layer(path, evaluator.base_of(path), {}, ()) for path in paths]
        for layer, each in zip(self._layers, claims, strict=True):
            layer.attributes.update(self._pairs(each.get("attributes")))
            layer.layers = tuple(
                name for name in expect(each.get("layers"), list) if isinstance(layer.attributes.get(name), Layer)
            )
        self.root = _at(self._layers, fields.get("root"))
        for layer in self._layers:
            evaluator.keep(layer)
        self.entries: dict[str, Tensor] = {}  # parameters and buffers by name
        for pair in expect(fields.get("entries"), list):
            name, number = expect(pair, list)
            self.entries[expect(name, str)] = _at(self.tensors, number)

    def _pairs(self, claim: Any) -> dict[str, Any]:
        found = {}
        for pair in expect(claim, list):
            name, value = expect(pair, list)
            found[expect(name, str)] = self._value(value)
        return found

    def _value(self, claim: Any) -> Any:
        if claim is None or type(claim) in (bool, int, str):
            return claim
        ((kind, content),) = expect(claim, dict).items()
        match kind:
            case "float":
                return float.fromhex(expect(content, str))
            case "tuple" | "list":
                items = [self._value(each) for each in expect(content, list)]
                return tuple(items) if kind == "tuple" else items
            case "dict":
                return {self._value(key): self._value(value) for key, value in map(_pair, expect(content, list))}
            case "size":
                return torch.Size([_number(each) for each in expect(content, list)])
            case "dtype":
                return _dtype(content)
            case "device":
                place, index = expect(content, list)
                return Device(expect(place, str), index)
            case "tensor":
                return _at(self.tensors, content)
            case "module":
                return _at(self._layers, content)
            case "global":
                return self._evaluator.global_value(expect(content, str))
            case "record":
                name, values = expect(content, list)
                made = self._evaluator.global_value(expect(name, str))
                return Record(made, self._pairs(values)) if isinstance(made, Class) else Foreign(name)
            case "other":
                return Foreign(expect(content, str))
        raise MalformedReply(f"a value of kind {kind}")


def _pair(claim: Any) -> tuple[Any, Any]:
    key, value = expect(claim, list)
    return key, value


def _at(values: list[Any], index: Any) -> Any:
    if not 0 <= expect(index, int) < len(values):
        raise MalformedReply(f"no item {index}")
    return values[index]


def _number(claim: Any) -> int:
    if not 0 <= expect(claim, int) < _MAX_NUMBER:
        raise MalformedReply(f"a size of {claim}")
    return int(claim)


def _dtype(claim: Any) -> torch.dtype:
    dtype = getattr(torch, expect(claim, str), None)
    if not isinstance(dtype, torch.dtype):
        raise MalformedReply(f"no dtype {claim}")
    return dtype


def _tensor(claim: Any, storages: list[Tensor]) -> Tensor:
    fields, dtype = expect(claim, dict), _dtype(claim.get("dtype"))
    storage = _at(storages, fields.get("storage"))
    shape, strides = ([_number(each) for each in expect(fields.get(name), list)] for name in ("shape", "strides"))
    offset = _number(fields.get("offset"))
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if 0 not in shape and (last + 1) * dtype.itemsize > storage.numel():
        raise MalformedReply("a tensor past the end of its storage")
    whole = storage[: storage.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    made = whole.as_strided(shape, strides, offset)
    if expect(fields.get("host"), bool):
        mark_on_host(made)
    return made
