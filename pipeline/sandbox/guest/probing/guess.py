"""A guess at the arguments of `forward`, with a symbol for each size.

Dimensions that share a symbol have the same size in every workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.jobs.calls import in_range

# Symbols: batch, channels, height, width, time, sequence length, edges of a graph, and pairs (such as the ends of an
# edge). The first workload has ordinary sizes, the second odd ones. Within a workload, sizes are pairwise distinct.
SIZES: tuple[Mapping[str, int], ...] = (
    {"B": 2, "C": 16, "H": 12, "W": 20, "T": 6, "L": 24, "E": 40, "P": 2},
    {"B": 3, "C": 21, "H": 11, "W": 23, "T": 5, "L": 29, "E": 51, "P": 2},
    {"B": 5, "C": 26, "H": 10, "W": 14, "T": 4, "L": 18, "E": 33, "P": 2},
)
LAYOUTS: Mapping[int, tuple[tuple[str, ...], ...]] = {
    1: (("B",), ("L",), ("C",)),
    2: (("B", "C"), ("B", "L"), ("L", "C")),
    3: (("B", "L", "C"), ("B", "C", "L"), ("C", "H", "W")),
    4: (("B", "C", "H", "W"), ("B", "H", "W", "C"), ("B", "T", "L", "C")),
    5: (("B", "C", "T", "H", "W"), ("B", "T", "C", "H", "W"), ("B", "T", "H", "W", "C")),
    6: (("B", "C", "T", "L", "H", "W"), ("B", "T", "L", "H", "W", "C")),
}
ANY_KEYS = ("a", "b")  # keys of a dict whose real keys are unknown
MAX_ELEMENTS = 1 << 18  # of all inputs of a call


@dataclass(frozen=True, slots=True)
class TensorArg:
    """A tensor. Each of its `dims` is a symbol, or a product of symbols such as `"H*W"`."""

    name: str
    dims: tuple[str, ...]
    dtype: str = "float32"
    low: int = 0  # integers are drawn from [low, high), and floats if low < high
    high: int = 0


@dataclass(frozen=True, slots=True)
class ListArg:
    """A list of tensors, or a dict of them."""

    items: tuple[TensorArg, ...]
    keys: tuple[str, ...] = ()  # one for each item of a dict; empty for a list


@dataclass(frozen=True, slots=True)
class SizeArg:
    """An integer that is a size, as in `forward(x, height, width)`."""

    dim: str


@dataclass(frozen=True, slots=True)
class SizesArg:
    """A list of integers that are sizes, as in `forward(x, x_size)`."""

    dims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlainArg:
    """A constant."""

    value: bool | int | float | str | dict[str, Any] | None


Arg: TypeAlias = TensorArg | ListArg | SizeArg | SizesArg | PlainArg


@dataclass(frozen=True, slots=True)
class Spec:
    """One tensor of a workload, with a number for each size."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: int
    high: int

    def draw(self, generator: torch.Generator) -> Tensor:
        dtype = getattr(torch, self.dtype)
        if dtype.is_floating_point and self.low < self.high:
            return in_range(torch.rand(self.shape, generator=generator, dtype=dtype), self.low, self.high)
        if dtype.is_floating_point:
            return torch.randn(self.shape, generator=generator, dtype=dtype)
        if dtype is torch.bool:
            return torch.rand(self.shape, generator=generator) < 0.5
        return torch.randint(self.low, max(self.low + 1, self.high), self.shape, generator=generator, dtype=dtype)


@dataclass(frozen=True)
class Guess:
    """Arguments of `forward`, and the size of each symbol."""

    args: tuple[Arg, ...]
    sizes: tuple[tuple[str, int], ...]  # (symbol, size), sorted

    def tensors(self) -> Iterator[tuple[int, int, TensorArg]]:
        """(index of the argument, index in its list, tensor)"""
        for index, arg in enumerate(self.args):
            for item, tensor in enumerate(arg.items if isinstance(arg, ListArg) else (arg,)):
                if isinstance(tensor, TensorArg):
                    yield index, item, tensor

    @cached_property
    def elements(self) -> int:
        """Number of elements of all tensors together."""
        return sum(prod(spec.shape) for spec in self.specs())

    def symbols(self) -> tuple[str, ...]:
        """The symbols that the tensors use, then those of the other arguments, in order of appearance."""
        dims = [dim for _, _, tensor in self.tensors() for dim in tensor.dims]
        for arg in self.args:
            dims += [arg.dim] if isinstance(arg, SizeArg) else arg.dims if isinstance(arg, SizesArg) else ()
        return tuple(dict.fromkeys(symbol for dim in dims for symbol in dim.split("*")))

    def size(self, dim: str) -> int:
        return prod(self._size_of[symbol] for symbol in dim.split("*"))

    @cached_property
    def _size_of(self) -> dict[str, int]:
        return dict(self.sizes)

    def shape(self, tensor: TensorArg) -> tuple[int, ...]:
        return tuple(self.size(dim) for dim in tensor.dims)

    @cached_property
    def _specs(self) -> tuple[Spec, ...]:
        return tuple(Spec(t.name, self.shape(t), t.dtype, t.low, t.high) for _, _, t in self.tensors())

    def specs(self) -> tuple[Spec, ...]:
        return self._specs

    def tree(self) -> list[Any]:
        """Positional arguments, with `{"tensor": i}` for the i-th spec."""
        count = 0
        tree: list[Any] = []
        for arg in self.args:
            match arg:
                case TensorArg():
                    tree.append({"tensor": count})
                    count += 1
                case ListArg(items, keys):
                    leaves = [{"tensor": count + i} for i in range(len(items))]
                    tree.append(dict(zip(keys, leaves, strict=True)) if keys else leaves)
                    count += len(items)
                case SizeArg(dim):
                    tree.append(self.size(dim))
                case SizesArg(dims):
                    tree.append([self.size(dim) for dim in dims])
                case PlainArg(value):
                    tree.append(value)
        return tree

    def key(self) -> tuple[Any, ...]:
        """A key that is equal for guesses that make the same call."""
        return self.specs(), str(self.tree())

    def resized(self, changes: Mapping[str, int]) -> Guess:
        return replace(self, sizes=tuple(sorted({**dict(self.sizes), **changes}.items())))

    def with_arg(self, index: int, arg: Arg) -> Guess:
        return replace(self, args=(*self.args[:index], arg, *self.args[index + 1 :]))

    def with_tensor(self, index: int, item: int, **changes: Any) -> Guess:
        """The guess with other fields of one tensor."""
        arg = self.args[index]
        if isinstance(arg, ListArg):
            items = (*arg.items[:item], replace(arg.items[item], **changes), *arg.items[item + 1 :])
            return self.with_arg(index, replace(arg, items=items))
        assert isinstance(arg, TensorArg)
        return self.with_arg(index, replace(arg, **changes))

    def with_dims(self, change: Callable[[str], str]) -> Guess:
        """The guess with `change` applied to every dimension of its tensors."""
        guess = self
        for index, item, tensor in self.tensors():
            guess = guess.with_tensor(index, item, dims=tuple(map(change, tensor.dims)))
        return guess

    def merged(self, symbol: str, into: str) -> Guess:
        """The guess with one symbol in place of two."""

        def renamed(dim: str) -> str:
            return "*".join(into if s == symbol else s for s in dim.split("*"))

        guess = self.with_dims(renamed)
        for index, arg in enumerate(guess.args):
            if isinstance(arg, SizeArg):
                guess = guess.with_arg(index, SizeArg(renamed(arg.dim)))
            elif isinstance(arg, SizesArg):
                guess = guess.with_arg(index, SizesArg(tuple(map(renamed, arg.dims))))
        return guess

    def split(self, index: int, item: int, axis: int, size: int) -> Guess:
        """The guess with a new symbol for one axis of one tensor."""
        tensor = next(tensor for i, k, tensor in self.tensors() if (i, k) == (index, item))
        symbol = f"{tensor.dims[axis][0]}{index}{item}{axis}"
        dims = (*tensor.dims[:axis], symbol, *tensor.dims[axis + 1 :])
        return self.with_tensor(index, item, dims=dims).resized({symbol: size})


def planar(guess: Guess) -> Guess:
    """The guess with flattened planes in place of sequences: (batch, height*width, channels)."""
    return guess.with_dims(lambda dim: "H*W" if dim == "L" else dim)


def draw(specs: tuple[Spec, ...], seed: int) -> list[Tensor]:
    """One tensor for each spec."""
    generator = torch.Generator().manual_seed(seed)
    return [spec.draw(generator) for spec in specs]
