"""Tidy: rewrite Inductor's source as one self-contained, readable file.

The rooms `read`, `kernel`, `forward` and `constructor` build on the tools in `syntax`.
"""

from .refusals import NeedsImport, NotTidied
from .tidy_lowered import tidy

__all__ = ["NeedsImport", "NotTidied", "tidy"]
