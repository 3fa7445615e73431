"""Lines as Python's parser counts them."""

from __future__ import annotations

import io


def lines_of(code: str) -> list[str]:
    """The lines with their ends; `str.splitlines` would also split at form feeds and the like."""
    return list(io.StringIO(code, newline=""))
