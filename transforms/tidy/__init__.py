"""Tidy: rewrite Inductor's source as one self-contained, readable file.

The rooms `read`, `kernel`, `forward` and `constructor` build on the tools in `syntax`.
"""

from .tidy_lowered import constructor_text, tidy

__all__ = ["constructor_text", "tidy"]
