"""Probe: constructor arguments and workloads for a module, found in a guest."""

from .probe import probe

__all__ = ["probe"]
