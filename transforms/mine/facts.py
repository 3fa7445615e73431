"""Evaluate conditions that have the same value wherever a dataset row runs.

Assumptions: environment variables are unset; Python and torch are at least the versions below; of third-party
packages, only those on the allow-list are installed. Mined code tests such conditions with packages that it must not
import, so the miner replaces the condition by its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from tree_sitter import Node

from . import allowed
from . import tree_sitter_nodes as ts
from .tree_sitter_nodes import text

TORCH = (2, 11)
PYTHON = (3, 11)

Flag: TypeAlias = Callable[[str], bool | None]  # name -> the boolean constant that it is bound to, else None
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_AVAILABLE = re.compile(r"_?is_(\w+)_available")
_COMPARE: dict[str, Callable[[int], bool]] = {
    ">=": lambda order: order >= 0,
    ">": lambda order: order > 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
}


def truth(node: Node, flag: Flag = lambda name: None) -> bool | None:
    """Value of a condition, None if it is not certain."""
    match node.type:
        case "true" | "false":
            return node.type == "true"
        case "identifier":
            return flag(text(node))
        case "parenthesized_expression" if len(ts.statements(node)) == 1:
            return truth(ts.statements(node)[0], flag)
        case "not_operator":
            inner = truth(ts.field(node, "argument"), flag)
            return None if inner is None else not inner
        case "boolean_operator":
            return _combine(node, flag)
        case "comparison_operator" if len(node.children) == 3:
            return _membership(node) if text(node.children[2]) == "os.environ" else _comparison(node)
        case "call":
            return _availability(node)
    return None


def _combine(node: Node, flag: Flag) -> bool | None:
    left, right = (truth(ts.field(node, side), flag) for side in ("left", "right"))
    decisive = text(ts.field(node, "operator")) == "or"  # `or` is true by one side, `and` is false by one
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else not decisive


def environment_default(call: Node) -> Node | str | None:
    """Value of `os.environ.get(name, default)` where the variable is not set; None for other calls."""
    if ts.dotted(ts.field(call, "function")) not in (("os", "environ", "get"), ("os", "getenv")):
        return None
    arguments = ts.statements(ts.field(call, "arguments"))
    if len(arguments) == 2 and arguments[1].type == "keyword_argument":
        return ts.field(arguments[1], "value")
    return arguments[1] if len(arguments) == 2 else "None"


def _membership(node: Node) -> bool | None:
    """`"NAME" in os.environ`"""
    operator = text(node.children[1])
    return operator == "not in" if operator in ("in", "not in") else None


def _comparison(node: Node) -> bool | None:
    """Value of a comparison of Python's or torch's version with a constant."""
    left, operator, right = node.children
    compare = _COMPARE.get(text(operator))
    if compare is None:
        return None
    if text(left) == "sys.version_info":
        wanted, known = _numbers(right) if right.type == "tuple" else None, PYTHON
    elif _is_of_torch(left):
        wanted, known = _numbers(right), TORCH
    else:
        return None
    return None if wanted is None else _decide(compare, wanted, known)


def _decide(compare: Callable[[int], bool], wanted: tuple[int, ...], known: tuple[int, ...]) -> bool | None:
    """Value of a version comparison: certain only for versions older than the oldest supported one."""
    return compare(1) if wanted[: len(known)] < known else None


def _is_of_torch(node: Node) -> bool:
    """True if the node is `torch.__version__`, or a call of any function with it as the only argument."""
    while node.type == "call":
        arguments = ts.statements(ts.field(node, "arguments"))
        if len(arguments) != 1:
            return False
        node = arguments[0]
    return text(node) == "torch.__version__"


def _numbers(node: Node) -> tuple[int, ...] | None:
    """The version in `"1.2"`, `parse("1.2")` or `(1, 2)`."""
    if node.type == "tuple":
        digits = [text(part) for part in ts.statements(node)]
        return tuple(map(int, digits)) if digits and all(map(str.isdigit, digits)) else None
    literals = [inner for inner in ts.walk(node) if inner.type == "string_content"]
    found = _VERSION.match(text(literals[0])) if len(literals) == 1 else None
    return tuple(map(int, found.group().split("."))) if found else None


def _availability(node: Node) -> bool | None:
    """Value of `is_PACKAGE_available()` or `is_torch_version(">=", "1.2")`, helpers of transformers and its kin."""
    name = text(ts.field(node, "function"))
    arguments = ts.statements(ts.field(node, "arguments"))
    if name == "is_torch_version" and len(arguments) == 2:
        compare, wanted = _COMPARE.get(text(arguments[0]).strip("\"'")), _numbers(arguments[1])
        return _decide(compare, wanted, TORCH) if compare and wanted else None
    found = _AVAILABLE.fullmatch(name)
    if found is None or arguments:
        return None
    return found.group(1) in allowed.THIRD_PARTY
