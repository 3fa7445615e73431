"""The syntax tree of the source that is probed, parsed once."""

from __future__ import annotations

import ast
from functools import lru_cache


def parsed(code: str) -> tuple[ast.Module, tuple[ast.AST, ...]]:
    """(tree, all of its nodes in the order of `ast.walk`). The nodes are shared and must not be changed."""
    return _parsed(code.rstrip("\n") + "\n")  # `linecache` ends the last line


@lru_cache(maxsize=4)
def _parsed(code: str) -> tuple[ast.Module, tuple[ast.AST, ...]]:
    tree = ast.parse(code)
    return tree, tuple(ast.walk(tree))
