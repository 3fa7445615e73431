"""Make the sizes in a problem's `get_inputs()` and `get_init_inputs()` small, so that a problem made for a GPU runs."""

from __future__ import annotations

import ast
from collections.abc import Callable

from kernelquarry.pipeline.schema.parse_python import parse

FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})
_EQUAL, _MOST = 16, 32


def with_small_inputs(text: str) -> tuple[str, ...]:
    """Versions of a problem's file to try in this order; empty if it makes no inputs.

    Integers outside of classes are made small: all above 16 become 16, or each is halved until it is 32 or less,
    which keeps what divides what.
    """
    if "get_inputs" not in _functions(text):
        return ()
    return tuple(dict.fromkeys(_with_integers(text, small) for small in (_equal, _halved)))


def with_small_arguments(text: str) -> str:
    """The file without `get_inputs()`, for a call with the problem's constructor and guessed inputs; "" if unneeded."""
    if "get_init_inputs" not in _functions(text):
        return ""
    tree = parse(_with_integers(text, _equal))
    tree.body = [node for node in tree.body if getattr(node, "name", "") != "get_inputs"]
    return ast.unparse(tree)


def _functions(text: str) -> set[str]:
    """Names of the functions; empty if the text does not parse."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _equal(number: int) -> int:
    return min(number, _EQUAL)


def _halved(number: int) -> int:
    while number > _MOST:
        number //= 2
    return number


def _with_integers(text: str, small: Callable[[int], int]) -> str:
    tree = parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign) or (isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and type(part.value) is int:
                    part.value = small(part.value)
    if "get_init_inputs" not in _functions(text):
        tree.body += parse("def get_init_inputs():\n    return []").body
    return ast.unparse(tree)
