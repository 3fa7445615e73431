"""Deduplicate: one pair of each cluster of copies stays, the others are dropped with what they copy."""

from .deduplicate import deduplicate

__all__ = ["deduplicate"]
