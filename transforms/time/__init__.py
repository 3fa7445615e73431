"""Time a pair's kernels, eager PyTorch and `torch.compile` on a GPU. `pipeline` imports this package."""

from .time_pair import TimeSettings, time

__all__ = ["TimeSettings", "time"]
