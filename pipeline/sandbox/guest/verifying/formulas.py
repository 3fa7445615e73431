"""A reference computed by other formulas: each operator by PyTorch's own decomposition, where it has one."""

from __future__ import annotations

from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode


class Decomposed(TorchDispatchMode):
    """Equal on numbers, these formulas differ in what they make of infinities: of `inf - inf`, of `0 * inf`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in decomposition_table:
            with self:
                result = decomposition_table[func](*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


def warm() -> None:
    """The first decomposition of a process imports much of PyTorch."""
    with torch.no_grad(), Decomposed():
        image = torch.ones(1, 1, 2, 2)
        torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bilinear")
        torch.nn.functional.max_pool2d(image, 2)
