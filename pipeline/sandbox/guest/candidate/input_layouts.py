"""Inputs of zeros, inputs inside larger buffers, and inputs that are not contiguous."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec

from .op_census import poison

_FRESH = 1 << 26  # bytes, above what an allocator keeps for the next
_OFFSET = 16  # elements, so that addresses are aligned as an allocator's are in parts of a tensor
_PLACES = 97  # where an input may be in its buffer


def zeros(specs: Iterable[InputSpec], device: torch.device) -> list[Tensor]:
    """A tensor of zeros for each spec. Large memory comes as zeros from the system, and is not written to."""
    made = []
    for spec in specs:
        dtype = getattr(torch, spec.dtype)
        make = torch.empty if math.prod(spec.shape) * dtype.itemsize >= _FRESH else torch.zeros
        made.append(make(spec.shape, dtype=dtype, device=device))
    return made


def offset(tensor: Tensor, seed: int) -> Tensor:
    """A contiguous copy inside a larger buffer, with poison around it; the seed decides the place."""
    start = _OFFSET * (1 + seed % _PLACES)
    buffer = tensor.new_empty(tensor.numel() + 2 * start)
    poison(buffer, nan=True)
    return buffer[start : start + tensor.numel()].view(tensor.shape).copy_(tensor)


def strided(tensor: Tensor) -> Tensor:
    """A copy at an offset into a larger buffer, the last two axes swapped in memory, with poison between rows."""
    sizes = tensor.shape[:-2] + tensor.shape[-2:][::-1]
    buffer = tensor.new_empty([size + 1 for size in sizes] or [2])
    poison(buffer, nan=True)
    view = buffer[tuple(slice(1, None) for _ in sizes)] if sizes else buffer[1]
    return view.mT.copy_(tensor) if len(sizes) > 1 else view.copy_(tensor)
