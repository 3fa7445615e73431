"""Compile the kernels of verified rows for further GPU architectures."""

from .settings import NO_TARGETS, TARGETS, Targets

__all__ = ["NO_TARGETS", "TARGETS", "Targets"]
