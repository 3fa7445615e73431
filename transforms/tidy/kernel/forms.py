"""Recognise and rewrite forms of expressions that Inductor writes, without types or context."""

from __future__ import annotations

import ast
import re
import struct

from ..refusals import NotTidied
from ..syntax.algebra import polynomial
from ..syntax.ast_tools import called
from .triton_functions import parsed

_INTEGER = ("floor_divide", "floor_remainder", "tl.minimum", "tl.maximum")
_NATURAL = re.compile(r"([xyz]|r\d_)(index|numel|\d+)|ks\d+")  # Inductor's names of indices and sizes


def extreme(left: ast.expr, right: ast.expr) -> tuple[str, ast.expr, ast.expr] | None:
    """Match `a * (a <= b) + b * (b < a)`, Inductor's form of a minimum; with `>=` it is a maximum."""
    match left, right:
        case (
            ast.BinOp(left=a, op=ast.Mult(), right=ast.Compare(left=a_again, ops=[first], comparators=[b_again])),
            ast.BinOp(left=b, op=ast.Mult(), right=ast.Compare()),
        ) if ast.unparse(a) == ast.unparse(a_again) and ast.unparse(b) == ast.unparse(b_again):
            return ("tl.minimum" if isinstance(first, ast.LtE) else "tl.maximum"), a, b
    return None


def known_scan(node: ast.Call) -> str | None:
    """Triton's own function for a scan of one value with a sum or a product; None for any other scan."""
    match node.args:
        case [ast.Tuple(elts=[_]), _, combine]:
            text = ast.unparse(combine)
            scans = {"_triton_helper_fn_add": "tl.cumsum", "_triton_helper_fn_mul": "tl.cumprod"}
            return next((scan for start, scan in scans.items() if text.startswith(start)), None)
    return None


def loaded(node: ast.expr) -> ast.Call | None:
    """The load that gives a value, with or without casts after it; None for any other value."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="to")):
            return loaded(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name("tl"), attr="load")):
            return node
    return None


def conjuncts(node: ast.expr) -> list[ast.expr]:
    """The parts of `a & b & ...`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        return [*conjuncts(node.left), *conjuncts(node.right)]
    return [node]


def is_index(node: ast.expr) -> bool:
    """True if the expression is integer arithmetic and nothing else."""
    match node:
        case ast.Name() | ast.Constant(value=int()):
            return True
        case ast.Subscript(value=value) | ast.UnaryOp(op=ast.USub(), operand=value):
            return is_index(value)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
            return is_index(left) and is_index(right)
        case ast.Call(args=args) if called(node) in _INTEGER:
            return all(map(is_index, args))
    return False


def is_natural(node: ast.expr) -> bool:
    """True if the expression is a sum of products of indices and sizes, which is never negative."""
    terms = polynomial(node).terms
    return all(factor > 0 and all(map(_NATURAL.fullmatch, factors)) for factors, factor in terms.items())


def is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value == 1.0


def compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    """The comparison, or its outcome if both sides are plain numbers."""
    comparison = ast.Compare(left, [op], [right])
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return ast.Constant(eval(ast.unparse(comparison)))
    return comparison


def number(node: ast.expr) -> float:
    """The value of a literal.

    Raises:
        NotTidied: the expression is no literal.
    """
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(operand)
        case ast.Call(func=ast.Name("float"), args=[ast.Constant(value=str(text))]):
            return float(text)
    raise NotTidied(f"number {ast.unparse(node)}")


def cast_literal(node: ast.expr, dtype: str) -> ast.expr:
    """A literal as a literal of another dtype; `float("inf")` stays as it is.

    Raises: NotTidied: a comparison of literals.
    """
    if isinstance(node, ast.Call):
        return node
    if not isinstance(node, ast.Constant | ast.UnaryOp):
        raise NotTidied(f"number {ast.unparse(node)}")
    if dtype == "int1":
        return ast.Constant(bool(number(node)))
    is_integer = dtype.startswith(("int", "uint"))
    return parsed(repr(int(ast.literal_eval(node)) if is_integer else number(node)))


def chosen(node: ast.expr, test: ast.expr, branch: int) -> ast.expr:
    """Replace `tl.where(test, a, b)` by its argument at `branch`; other expressions stay as they are."""
    match node:
        case ast.Call(args=[condition, _, _] as parts) if called(node) == "tl.where":
            return parts[branch] if ast.unparse(condition) == ast.unparse(test) else node
    return node


def short_float(node: ast.expr) -> ast.expr:
    """A float32 number in the fewest digits that identify it: 1e-06 for 9.999999974752427e-07."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, float) or abs(node.value) > 3e38:
        return node
    single = struct.Struct("f")
    packed = single.pack(node.value)
    if single.unpack(packed)[0] != node.value:
        return node
    shorter = (float(f"{node.value:.{digits}g}") for digits in range(1, 10))
    return ast.Constant(next(value for value in shorter if single.pack(value) == packed))


def plain_float(node: ast.expr) -> ast.expr:
    """The integer literal 0 as 0.0, for use with floats; other expressions stay as they are."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(float(node.value))
    return node
