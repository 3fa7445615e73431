"""Variants of rows: kernels in half precision, autotuned, one for each operator, or with gradients."""

from .make_variant import autotuned, backward, bfloat16, float16, operators

__all__ = ["autotuned", "backward", "bfloat16", "float16", "operators"]
