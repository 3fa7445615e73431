"""Deduplicate: of modules that copy each other the best stays, the others are dropped with what they copy."""

from .compare_sources import deduplicate

__all__ = ["deduplicate"]
