"""Compile the kernels of verified rows for further GPU architectures."""

from .settings import TARGETS, Targets

__all__ = ["TARGETS", "Targets"]
