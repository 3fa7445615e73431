"""Rows whose kernels also compute gradients. Only `pipeline.graph` loads it."""

from .make_backward import backward

__all__ = ["backward"]
