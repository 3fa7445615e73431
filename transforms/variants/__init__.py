"""Variants of rows: kernels in half precision, and autotuned kernels. Imported by `backward`."""

from .make_variant import autotuned, bfloat16, float16

__all__ = ["autotuned", "bfloat16", "float16"]
