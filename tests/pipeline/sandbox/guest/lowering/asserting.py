"""Modules that read values. They are in a separate file because pytest rewrites the assertions of test files."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn


class Asserting(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert (x.min() >= 0) and not (x.max() > 8), "range"
        assert not torch.isnan(x).any() and x.shape[1] % 2 == 0
        assert torch.isfinite(x).all().item()
        assert all((row >= 0).all() for row in x.unbind(1))
        if torch.isnan(x).any() or not (x == x).all():
            raise ValueError("nan")
        if (
            (x > 3)
            .any()
        ):  # fmt: skip
            warnings.warn("large", stacklevel=1)
        assert torch.isfinite(x).all() and not torch.isnan(x).any(), "another order"
        torch._assert(not (x > 1e9).any(), "larger")
        return x * 2


class Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[1] % 2 == 1
        return x * 2


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if (x > 0).all():
            x = x + 1
            raise_later = x.sum() > 0
            assert raise_later
        return x * 2


class Choosing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if (x > 0).all():
            print("positive")
        else:
            x = x + 1
        return x * 2
