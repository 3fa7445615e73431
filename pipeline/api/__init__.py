"""Verified pairs of PyTorch modules and Triton kernels.

This file is `kernelquarry/__init__.py`, see `tool.setuptools.package-dir` in `pyproject.toml`. Importing the package
starts nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelquarry.pipeline.check import Checker, CheckVerdict, check, check_async

__all__ = ["CheckVerdict", "Checker", "check", "check_async"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("kernelquarry.pipeline.check"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
