"""Time a pair's kernels, eager PyTorch and `torch.compile` on a GPU. `recipes.judge` imports it."""

from .time_pair import TimeSettings, time

__all__ = ["TimeSettings", "time"]
