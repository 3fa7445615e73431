"""Screen: a verified candidate becomes a row, unless a filter objects."""

from .screen_pair import first_objection, flatten, flatten_rejected, screen

__all__ = ["first_objection", "flatten", "flatten_rejected", "screen"]
