"""Variants of rows: kernels in half precision, autotuned kernels, and kernels that also compute gradients."""

from .make_variant import autotuned, backward, bfloat16, float16

__all__ = ["autotuned", "backward", "bfloat16", "float16"]
