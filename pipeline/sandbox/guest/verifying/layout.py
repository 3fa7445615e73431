"""Inputs that are not contiguous."""

from __future__ import annotations

from torch import Tensor

from .watch import poison


def strided(tensor: Tensor) -> Tensor:
    """A copy at an offset into a larger buffer, the last two axes the other way round in memory, poison between."""
    sizes = tensor.shape[:-2] + tensor.shape[-2:][::-1]
    buffer = tensor.new_empty([size + 1 for size in sizes] or [2])
    poison(buffer, nan=True)
    view = buffer[tuple(slice(1, None) for _ in sizes)] if sizes else buffer[1]
    return view.mT.copy_(tensor) if len(sizes) > 1 else view.copy_(tensor)
