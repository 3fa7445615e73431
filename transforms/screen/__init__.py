"""Screen: a verified candidate becomes a row, unless a filter objects."""

from .screen import first_objection, flatten, flatten_rejected, screen

__all__ = ["first_objection", "flatten", "flatten_rejected", "screen"]
