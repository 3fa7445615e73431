"""Training recipes: supervised fine-tuning, GRPO with the verifier as its reward, text generation, and evaluation.

Imported by `pipeline.cli` and by users of `KernelWriter`; the pipeline itself imports nothing from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .generate.writer import KernelWriter

__all__ = ["KernelWriter"]


def __getattr__(name: str) -> Any:
    """Import `KernelWriter` on first use, since its dependencies take seconds to import."""
    if name != "KernelWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .generate.writer import KernelWriter

    return KernelWriter
