"""Tidy: rewrite Inductor's source as one self-contained, readable file.

The rooms `read`, `kernel`, `forward` and `constructor` build on the tools in `syntax`.
"""

from .forward.arguments import signature
from .refusals import NeedsImport, NotTidied
from .tidy_lowered import constructor_text, file_around, tidy

__all__ = ["NeedsImport", "NotTidied", "constructor_text", "file_around", "signature", "tidy"]
