"""Parsing Python, from any thread."""

from __future__ import annotations

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(code: str) -> ast.Module:
    """`ast.parse`, which in CPython 3.11 keeps its depth in one place for all threads and fails when two meet.

    Raises: SyntaxError, ValueError, RecursionError, MemoryError as `ast.parse` does.
    """
    with _one_at_a_time:
        return ast.parse(code)


def parse_expression(code: str) -> ast.expr:
    """The one expression that `code` is. Raises as `parse`."""
    with _one_at_a_time:
        return ast.parse(code, mode="eval").body
