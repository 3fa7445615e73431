"""Tidy: Inductor's source becomes one self-contained file that a good engineer could have written."""

from .tidy_lowered import tidy

__all__ = ["tidy"]
