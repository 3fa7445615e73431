"""Lower: a probed module becomes Inductor's Triton source for a target GPU, with no GPU needed."""

from .lower_module import TARGET, lower

__all__ = ["TARGET", "lower"]
