"""Rows whose kernels also compute gradients. `pipeline` imports this package."""

from .make_backward import backward

__all__ = ["backward"]
