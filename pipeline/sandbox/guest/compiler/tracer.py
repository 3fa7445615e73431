"""Trace of a forward as a program that another process can run: buffers, launches and copies.

The candidate's Python runs on CPU tensors without values, as the program must be the same for all values. A forward
that depends on values, or computes outside of its kernels, raises `Untraceable`.

A program is JSON. A *view* is `{"storage", "dtype", "shape", "strides", "offset"}`, the last three in elements. Its
steps, in order, are

    {"launch": kernel, "grid": [x, y, z], "arguments": [argument, ...]}
    {"fill": view, "value": number}
    {"copy": view, "from": view}

An argument is `["*", storage, bytes]`, `[type, number]` or, for a tensor descriptor that the host made,
`["nvTmaDesc", storage, bytes, {"element", "shape", "strides", "block", "swizzle", "nan"}]`, see `tensor_map.Tiling`.
A floating number is its hexadecimal text, as JSON has no NaN and no infinity. Memory that no step wrote has any
contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from kernelquarry.pipeline.sandbox.operator_kinds import ALLOCATE, COPY, INITIALISE, VIEW
from kernelquarry.pipeline.sandbox.tensor_map import MAP

from ..candidate.op_census import Watch
from ..lib.pytree import tensors_of
from .compile_only_driver import Launch, beyond_a_grid, flat, scratch_bytes
from .deferral import deferral

_MAX_CONSTANTS = 64 << 20  # bytes of one program
_JOIN = frozenset({"cat", "stack"})
_VALUES = {"zeros": 0.0, "zeros_like": 0.0, "new_zeros": 0.0, "zero_": 0.0}
_VALUES |= {"ones": 1.0, "ones_like": 1.0, "new_ones": 1.0}

Json = dict[str, Any]


class Untraceable(Exception):
    """No program describes the candidate."""


class Kernels:
    """The binaries that programs launch, each once."""

    def __init__(self) -> None:
        self.described: list[Json] = []
        self.binaries: dict[str, Tensor] = {}
        self._numbers: dict[Any, int] = {}

    def number(self, launch: Launch) -> int:
        """Raises `Untraceable` if a launch of it needs more than a grid and arguments."""
        metadata = launch.metadata
        if needed := beyond_a_grid(metadata):
            raise Untraceable(needed)
        digest = launch.digest
        key = digest, metadata.name, metadata.num_warps, metadata.shared
        if key not in self._numbers:
            self._numbers[key] = len(self.described)
            if digest not in deferral.sources:
                self.binaries[f"binary.{digest}"] = torch.frombuffer(bytearray(launch.binary), dtype=torch.uint8)
            self.described.append(
                {
                    "name": metadata.name,
                    "symbol": metadata.name,
                    "sha256": digest,
                    "warps": metadata.num_warps,
                    "shared": metadata.shared,
                    "scratch": list(scratch_bytes(metadata)),
                }
            )
        return self._numbers[key]


class Tracer(Watch):
    """Records what runs inside as one program; `Recorder.listener` must be its `launch`."""

    def __init__(self, kernels: Kernels, named: Mapping[str, Tensor], moving: Iterable[Tensor] = ()) -> None:
        """Trace a call.

        Args:
            named: tensors that the executor fills, `state.<name>` and `input.<i>`.
            moving: other tensors that move with the module to a GPU. No kernel may take the rest that the module holds.
        """
        super().__init__()
        self.steps: list[Json] = []
        self.storages: list[Json] = []
        self.constants: dict[int, Tensor] = {}  # storage -> its bytes
        self._kernels = kernels
        self._numbers: dict[int, int] = {}  # storage's address -> its number
        self._kept: list[Any] = []  # storages: an address must not be used twice
        self._on_gpu: dict[int, Any] = {}  # storages by address: moving ones, and those that forward makes
        for tensor in moving:
            self._on_gpu[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        for name, tensor in named.items():
            self._register(tensor, name)
        self.named = {name: self.view(tensor) for name, tensor in named.items()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        operator = func._schema.name.removeprefix("aten::")
        known = [tensor for tensor in tensors_of((args, kwargs or {})) if self._knows(tensor)]
        plain = operator in ALLOCATE | INITIALISE | VIEW | COPY | _JOIN | {"_to_copy"}
        if known and not plain:
            raise Untraceable(f"runs {operator} on values")
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if operator not in VIEW or operator == "lift_fresh":
            for tensor in tensors_of(result):
                self._on_gpu[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        if operator in INITIALISE:
            self._fill(operator, result, args)
        elif operator == "copy_":
            self._copy(args[0], args[1])
        elif known and operator in COPY | {"_to_copy"} and not self._knows(result):
            self._register(result, "")
            self._copy(result, args[0])
        elif known and operator in _JOIN:
            self._join(operator, result, args)
        return result

    def allocated(self, tensor: Tensor) -> None:
        self._register(tensor, "")

    def launch(self, launch: Launch) -> None:
        given = flat(launch.signature, launch.arguments, launch.metadata)
        arguments = [self._argument(kind, value) for kind, value in given]
        self.steps.append({"launch": self._kernels.number(launch), "grid": list(launch.grid), "arguments": arguments})

    def view(self, tensor: Tensor) -> Json:
        return {
            "storage": self._number(tensor),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "offset": tensor.storage_offset(),
        }

    def program(self) -> Json:
        """The program as JSON, without the bytes of its constants."""
        return {"storages": self.storages, "named": self.named, "steps": self.steps}

    def _argument(self, kind: str, value: Any) -> list[Any]:
        if kind == MAP:
            base, tiling = value
            return [MAP, *self._argument("*", base)[1:], asdict(tiling)]
        if kind.startswith("*") and isinstance(value, Tensor):
            return ["*", self._number(value), value.storage_offset() * value.element_size()]
        if isinstance(value, bool | int) and kind[:1] in "iu":
            return [kind, int(value)]
        if isinstance(value, bool | int | float) and kind.startswith(("fp", "bf")):
            return [kind, float(value).hex()]
        raise Untraceable(f"a kernel takes a {type(value).__name__} as {kind}")

    def _fill(self, operator: str, result: Tensor, args: Sequence[Any]) -> None:
        if operator in ("fill_", "zero_") and not self._knows(result):
            return  # a constant, which is read when it is used
        if not self._knows(result):
            self._register(result, "")
        if operator in _VALUES:
            value = _VALUES[operator]
        elif operator == "scalar_tensor":
            value = args[0]
        else:  # full, full_like, new_full, fill_: the value is the last positional argument
            value = args[-1] if operator == "new_full" else args[1]
        if isinstance(value, Tensor):
            if self._knows(value):
                raise Untraceable("fills with a value that was computed")
            value = value.item()
        self.steps.append({"fill": self.view(result), "value": value.hex() if isinstance(value, float) else int(value)})

    def _copy(self, target: Tensor, source: Tensor) -> None:
        if not self._knows(target) and not self._knows(source):
            return  # between constants
        source = source.expand(target.shape) if source.shape != target.shape else source
        self.steps.append({"copy": self.view(target), "from": self.view(source)})

    def _join(self, operator: str, result: Tensor, args: Sequence[Any]) -> None:
        self._register(result, "")
        axis = args[1] if len(args) > 1 else 0
        at = 0
        for part in args[0]:
            if operator == "stack":
                self._copy(result.select(axis, at), part)
                at += 1
            elif part.numel():
                self._copy(result.narrow(axis, at, part.shape[axis]), part)
                at += part.shape[axis]

    def _knows(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._numbers

    def _number(self, tensor: Tensor) -> int:
        if not self._knows(tensor):
            if tensor.untyped_storage()._cdata not in self._on_gpu:
                raise Untraceable("uses a tensor that the module holds, which does not move with it")
            with _disable_current_modes():  # the copy is no operator of the candidate
                data = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).clone()
            self.constants[self._register(tensor, "constant")] = data
            if sum(constant.numel() for constant in self.constants.values()) > _MAX_CONSTANTS:
                raise Untraceable(f"over {_MAX_CONSTANTS} bytes of constants")
        return self._numbers[tensor.untyped_storage()._cdata]

    def _register(self, tensor: Tensor, origin: str) -> int:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self.storages)
            self._kept.append(storage)
            self.storages.append({"bytes": storage.nbytes(), "origin": origin})
        return self._numbers[storage._cdata]
