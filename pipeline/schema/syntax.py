"""Parsing Python, from any thread."""

from __future__ import annotations

import ast
import threading
import warnings

_one_at_a_time = threading.Lock()
_FILE = "<parsed>"  # what the compiler takes the code's file to be
# What it finds odd in code that is not ours is of no use to those who run us. This is said once and of that name alone:
# filters belong to all threads.
warnings.filterwarnings("ignore", module=_FILE)


def parse(code: str) -> ast.Module:
    """`ast.parse`, which in CPython 3.11 keeps its depth in one place for all threads and fails when two meet.

    It warns of nothing.

    Raises: SyntaxError, ValueError, RecursionError, MemoryError as `ast.parse` does.
    """
    with _one_at_a_time:
        return ast.parse(code, _FILE)


def parse_expression(code: str) -> ast.expr:
    """The one expression that `code` is. Raises and warns as `parse`."""
    with _one_at_a_time:
        return ast.parse(code, _FILE, mode="eval").body
