"""Inputs of guests that need no values, and inputs that are not contiguous."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from .watch import poison


def zeros(specs: Iterable[Mapping[str, Any]], device: torch.device) -> list[Tensor]:
    """A tensor for each `shape` and `dtype`."""
    return [torch.zeros(spec["shape"], dtype=getattr(torch, spec["dtype"]), device=device) for spec in specs]


def strided(tensor: Tensor) -> Tensor:
    """A copy at an offset into a larger buffer, the last two axes the other way round in memory, poison between."""
    sizes = tensor.shape[:-2] + tensor.shape[-2:][::-1]
    buffer = tensor.new_empty([size + 1 for size in sizes] or [2])
    poison(buffer, nan=True)
    view = buffer[tuple(slice(1, None) for _ in sizes)] if sizes else buffer[1]
    return view.mT.copy_(tensor) if len(sizes) > 1 else view.copy_(tensor)
