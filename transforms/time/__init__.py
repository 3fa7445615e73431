"""Time: a label that says how fast a pair's kernels are beside eager and `torch.compile`."""

from .time_pair import TimeSettings, time

__all__ = ["TimeSettings", "time"]
