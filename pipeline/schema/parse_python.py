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
    """`ast.parse`, one at a time, which warns of nothing.

    Before 3.11.8 and 3.12.2, CPython counts its depth in one place for all threads, and where two meet it raises
    `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905).

    Raises: SyntaxError, ValueError, RecursionError, MemoryError as `ast.parse` does.
    """
    with _one_at_a_time:
        return ast.parse(code, _FILE)  # noqa: TID251


def parse_expression(code: str) -> ast.expr:
    """The one expression that `code` is. Raises and warns as `parse`."""
    with _one_at_a_time:
        return ast.parse(code, _FILE, mode="eval").body  # noqa: TID251
