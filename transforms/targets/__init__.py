"""Compile the kernels of verified rows for further GPU architectures."""

from .architectures import TARGETS, Targets

__all__ = ["TARGETS", "Targets"]
