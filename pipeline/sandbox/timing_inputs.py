"""Tensors to time with. What is computed is not looked at, so they are drawn where they are needed, and quickly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def draw_timing_inputs(specs: Sequence[Mapping[str, Any]], device: torch.device) -> list[Tensor]:
    """One for each of `{"shape", "dtype", "low", "high"}`: normal numbers, integers in [low, high), truth values."""
    generator = torch.Generator(device).manual_seed(0)
    return [_draw(spec, device, generator) for spec in specs]


def _draw(spec: Mapping[str, Any], device: torch.device, generator: torch.Generator) -> Tensor:
    shape, dtype = list(spec["shape"]), getattr(torch, spec["dtype"])
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)
    low, high = (0, 2) if dtype == torch.bool else (spec["low"], max(spec["low"] + 1, spec["high"]))
    return torch.randint(low, high, shape, generator=generator, device=device).to(dtype)
