"""The job `lower`: Inductor's source for a module, and the meaning of its arguments.

The host's reply is a dict: `transforms/lower/lower_module.py` validates it against the types of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class LowerRequest:
    code: str  # source with `Model` and `get_init_inputs`
    workloads: tuple[dict[str, Any], ...]  # `tensors`, each with `name`, `shape` and `dtype`, `args` and `kwargs`
    target: str
    training: bool = False  # with gradients
    dtype: str = "float32"  # the module is cast to it, if it is float16 or bfloat16
    most_kernels: int = 64  # of one source
    constructor_sizes: bool = False  # sizes of the state that follow from the constructor are symbols where possible


# A module has more sizes than SymPy's cache holds.
LOWER = GuestKind("lower", LowerRequest, dict[str, Any], "lower", {"SYMPY_CACHE_SIZE": "None"})
