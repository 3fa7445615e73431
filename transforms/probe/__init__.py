"""Probe: find constructor arguments and workloads for a module in a guest.

The graph and decontamination, which probes benchmark problems, import it.
"""

from .probe_module import ProbeLimits, probe

__all__ = ["ProbeLimits", "probe"]
