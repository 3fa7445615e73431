"""Backward: rows whose kernels give gradients too, by the stages that make pairs."""

from .backward import backward

__all__ = ["backward"]
