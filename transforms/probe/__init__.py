"""Probe: constructor arguments and workloads for a module, found in a guest."""

from .probe_module import ProbeLimits, probe

__all__ = ["ProbeLimits", "probe"]
