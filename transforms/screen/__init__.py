"""Screen: a verified candidate becomes a row, unless a filter objects.

Imported by `backward`, `variants` and `pipeline.dataset`.
"""

from .screen_pair import first_objection, screen

__all__ = ["first_objection", "screen"]
