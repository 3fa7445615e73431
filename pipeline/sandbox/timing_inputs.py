"""Input tensors for timings. Their results are not compared, so they are drawn fast, on the device that needs them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .jobs.calls import InputSpec, in_range


def draw_timing_inputs(specs: Sequence[InputSpec], device: torch.device) -> list[Tensor]:
    """A tensor for each spec: normal numbers, or numbers of its range; integers in [low, high); or truth values."""
    generator = torch.Generator(device).manual_seed(0)
    return [_draw(spec, device, generator) for spec in specs]


def _draw(spec: InputSpec, device: torch.device, generator: torch.Generator) -> Tensor:
    shape, dtype = list(spec.shape), getattr(torch, spec.dtype)
    if spec.low < spec.high and dtype.is_floating_point:
        fractions = torch.rand(shape, generator=generator, device=device)
        return in_range(fractions, spec.low, spec.high).to(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)
    low, high = (0, 2) if dtype == torch.bool else (spec.low, max(spec.low + 1, spec.high))
    return torch.randint(low, high, shape, generator=generator, device=device).to(dtype)
