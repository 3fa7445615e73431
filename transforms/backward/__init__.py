"""Backward: rows whose kernels give gradients too, by the stages that make pairs."""

from .make_backward import backward

__all__ = ["backward"]
