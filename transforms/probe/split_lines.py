"""Split code into lines as Python's parser counts them."""

from __future__ import annotations

import io


def lines_of(code: str) -> list[str]:
    """The lines with their ends. Unlike `str.splitlines`, form feeds and similar characters end no line."""
    return list(io.StringIO(code, newline=""))
