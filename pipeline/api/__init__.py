"""Verified pairs of PyTorch modules and Triton kernels.

This file is `kernelquarry/__init__.py`, see `tool.setuptools.package-dir` in `pyproject.toml`. Importing the package
starts nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelquarry.pipeline.adapters.kernelbench_scorer import eval_kernel_against_ref
    from kernelquarry.pipeline.adapters.trl import KernelReward
    from kernelquarry.pipeline.adapters.verifiers import KernelEnv, KernelTaskset
    from kernelquarry.pipeline.check import Checker, CheckVerdict, check, check_async

__all__ = ["CheckVerdict", "Checker", "KernelReward", "check", "check_async", "eval_kernel_against_ref"]
if importlib.util.find_spec("verifiers") is not None:
    __all__ += ["KernelEnv", "KernelTaskset"]

_FOLDERS = {
    "KernelEnv": "adapters.verifiers",
    "KernelReward": "adapters.trl",
    "KernelTaskset": "adapters.verifiers",
    "eval_kernel_against_ref": "adapters.kernelbench_scorer",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    folder = f"kernelquarry.pipeline.{_FOLDERS.get(name, 'check')}"
    value = getattr(importlib.import_module(folder), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
