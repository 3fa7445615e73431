"""Thread-safe parsing of Python source that is not ours."""

from __future__ import annotations

import ast
import threading
import warnings

_one_at_a_time = threading.Lock()
_FILE = "<parsed>"  # file name that the parser reports
# Parser warnings about others' code are no use to our users. Warning filters are global to the process, so this one is
# set once and matches that file name only.
warnings.filterwarnings("ignore", module=_FILE)


def parse(code: str) -> ast.Module:
    """`ast.parse` under a lock and without warnings.

    The lock works around python/cpython#106905: before 3.11.8 and 3.12.2 all threads share one depth counter, and
    concurrent calls raise `SystemError: AST constructor recursion depth mismatch`.

    Raises: SyntaxError, ValueError, RecursionError, MemoryError as `ast.parse` does.
    """
    with _one_at_a_time:
        return ast.parse(code, _FILE)  # noqa: TID251


def parse_expression(code: str) -> ast.expr:
    """The syntax tree of a single expression. Raises: as `parse`."""
    with _one_at_a_time:
        return ast.parse(code, _FILE, mode="eval").body  # noqa: TID251
