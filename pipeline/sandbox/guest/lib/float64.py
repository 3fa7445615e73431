"""Run a module in float64: its tensors, and the dtypes that its forward names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .dispatch_mode import DispatchMode

_NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})


def wide(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def widened(module: nn.Module) -> nn.Module:
    """Convert parameters, buffers and tensors in attributes, and in lists and dicts there, to float64."""
    module.double()
    for child in module.modules():
        for name, value in list(vars(child).items()):
            if not name.startswith("_"):
                vars(child)[name] = _widened_value(value)
    return module


def _widened_value(value: Any) -> Any:
    if type(value) is Tensor:
        return wide(value)
    if type(value) in (list, tuple):
        return type(value)(_widened_value(item) for item in value)
    if type(value) is dict:
        return {key: _widened_value(item) for key, item in value.items()}
    return value


class InFloat64(DispatchMode):
    """Replaces float32, float16 and bfloat16 by float64 in the arguments of all operators."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: self._widen(value) for name, value in (kwargs or {}).items()}
        result = func(*(self._widen(value) for value in args), **kwargs)
        return wide(result) if func is torch.ops.aten.lift_fresh.default else result  # torch.tensor(..., dtype=...)

    def _widen(self, value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
