"""Variants: rows whose kernels are in half precision, or autotuned, by the stages that make pairs."""

from .make_variant import autotuned, bfloat16, float16

__all__ = ["autotuned", "bfloat16", "float16"]
