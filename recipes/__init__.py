"""Recipes: supervised training, then GRPO with the verifier as the reward, and an evaluation that means something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .generate.writer import KernelWriter

__all__ = ["KernelWriter"]


def __getattr__(name: str) -> Any:
    """`KernelWriter`, when it is asked for: the package imports nothing that takes time."""
    if name != "KernelWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .generate.writer import KernelWriter

    return KernelWriter
