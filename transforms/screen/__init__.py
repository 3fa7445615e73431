"""Screen: a verified candidate becomes a row, unless a filter objects."""

from .screen import flatten, screen

__all__ = ["flatten", "screen"]
