"""Census of the operators that a candidate runs outside of its kernels, and poison for memory that it did not write."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.operator_kinds import ALLOCATE, FREE

from ..lib.dispatch_mode import DispatchMode
from .launch_log import session


class Watch(DispatchMode):
    """Collects the names of computing operators in `operators`, and poisons fresh memory, see `poison`."""

    def __init__(self, nan: bool = True) -> None:
        super().__init__()
        self.nan = nan
        self.operators: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func._schema.name.replace("::", ".")
        operator = name.removeprefix("aten.")
        if operator in ALLOCATE:
            self.allocated(result)
        elif operator in ("_to_copy", "copy_"):
            if args[0].dtype != (result if operator == "_to_copy" else args[1]).dtype:
                self.operators.add("aten._to_copy")
        elif operator not in FREE:
            self.operators.add(name)
        if session.memory is not None:
            session.memory.record(func, args, kwargs, result)
        return result

    def allocated(self, tensor: Tensor) -> None:
        """Called with each tensor that was allocated without values."""
        poison(tensor, self.nan)


def warm() -> None:
    """Enter a dispatch mode once, which imports much of PyTorch."""
    with Watch():
        torch.nn.Linear(1, 1)


def poison(tensor: Tensor, nan: bool) -> None:
    """Fill with values that no kernel would leave: NaN or a huge number, a huge integer, alternating booleans."""
    if tensor.dtype == torch.bool:
        alternating = torch.arange(tensor.numel(), device=tensor.device) % 2 == int(nan)
        tensor.copy_(alternating.reshape(tensor.shape))
    elif tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        tensor.fill_(torch.nan if nan else torch.finfo(tensor.dtype).min / 2)
    else:
        tensor.fill_(torch.iinfo(tensor.dtype).max // 3)
