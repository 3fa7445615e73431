"""Lower: turn a probed module into Inductor's Triton source for a target GPU, without a GPU.

Imported by `backward` and `variants`.
"""

from .lower_module import TARGET, lower

__all__ = ["TARGET", "lower"]
