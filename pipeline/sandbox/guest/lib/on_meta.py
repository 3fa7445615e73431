"""Tensors without values, so that a module of any size is constructed in no time."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors


class OnMeta(TorchFunctionMode):
    """Makes all tensors without values within the context."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in _device_constructors():
            kwargs["device"] = "meta"
        elif func in (Tensor.cuda, Tensor.cpu):
            return args[0]
        return func(*args, **kwargs)
