"""The statements of a module's file by line, for comments on what each line of a `forward` computes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from kernelquarry.pipeline.schema import parse_python

_LONGEST = 100  # characters


def statements(code: str) -> Mapping[int, str]:
    """Line -> the statement on it, in one line; of an `if` or a loop its head."""
    found: dict[int, str] = {}
    for node in ast.walk(parse_python.parse(code)):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            text = ast.unparse(node).splitlines()[0]
            for line in range(node.lineno, max(last, node.lineno) + 1):
                found[line] = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return found
