"""Forms of expressions that Inductor writes, recognised and rewritten without knowing what they are about."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Sequence

from ..read.inductor_source import NotTidied
from ..syntax.algebra import polynomial
from ..syntax.ast_tools import walk
from .triton_functions import parsed

_INTEGER = ("floor_divide", "floor_remainder", "tl.minimum", "tl.maximum")
_NATURAL = re.compile(r"([xyz]|r\d_)(index|numel|\d+)|ks\d+")  # Inductor's names


def extreme(left: ast.expr, right: ast.expr) -> tuple[str, ast.expr, ast.expr] | None:
    """The parts of `a * (a <= b) + b * (b < a)`: how Inductor writes a minimum, and with `>=` a maximum."""
    match left, right:
        case (
            ast.BinOp(left=a, op=ast.Mult(), right=ast.Compare(left=a_again, ops=[first], comparators=[b_again])),
            ast.BinOp(left=b, op=ast.Mult(), right=ast.Compare()),
        ) if ast.unparse(a) == ast.unparse(a_again) and ast.unparse(b) == ast.unparse(b_again):
            return ("tl.minimum" if isinstance(first, ast.LtE) else "tl.maximum"), a, b
    return None


def known_scan(node: ast.Call) -> str | None:
    """Triton's own name for a scan of one value with a combine function that Inductor wrote."""
    combine = ast.unparse(node.args[2])
    one = isinstance(node.args[0], ast.Tuple) and len(node.args[0].elts) == 1
    if one and combine.startswith("_triton_helper_fn_add"):
        return "tl.cumsum"
    if one and combine.startswith("_triton_helper_fn_mul"):
        return "tl.cumprod"
    return None


def calls(body: Sequence[ast.stmt]) -> list[ast.Call]:
    return [node for statement in body for node in walk(statement) if isinstance(node, ast.Call)]


def loaded(node: ast.expr) -> ast.Call | None:
    """The load that a value is, before a cast to a wider dtype."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="to")):
            return loaded(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name("tl"), attr="load")):
            return node
    return None


def targets(statement: ast.stmt) -> list[str]:
    return [node.id for node in walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        return [*conjuncts(node.left), *conjuncts(node.right)]
    return [node]


def joined(names: Sequence[str]) -> ast.expr:
    return parsed(" & ".join(names))


def is_index(node: ast.expr) -> bool:
    """Whether it is integer arithmetic and nothing else."""
    match node:
        case ast.Name() | ast.Constant(value=int()):
            return True
        case ast.Subscript(value=value) | ast.UnaryOp(op=ast.USub(), operand=value):
            return is_index(value)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
            return is_index(left) and is_index(right)
        case ast.Call(func=func, args=args) if ast.unparse(func) in _INTEGER:
            return all(map(is_index, args))
    return False


def is_natural(node: ast.expr) -> bool:
    """Whether it is a sum of products of indices and sizes, which is never negative."""
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
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(operand)
        case ast.Call(func=ast.Name("float"), args=[ast.Constant(value=str(text))]):
            return float(text)
    raise NotTidied(f"number {ast.unparse(node)}")


def cast_literal(node: ast.expr, dtype: str) -> ast.expr:
    if isinstance(node, ast.Call):
        return node
    value = number(node)
    if dtype == "int1":
        return ast.Constant(bool(value))
    if dtype.startswith("int") or dtype.startswith("uint"):
        assert not isinstance(node, ast.Call)
        return parsed(repr(int(ast.literal_eval(node))))
    return parsed(repr(value))


def chosen(node: ast.expr, test: ast.expr, branch: int) -> ast.expr:
    """What `tl.where(test, a, b)` is where `test` has been decided: its argument at `branch`; others as they are."""
    match node:
        case ast.Call(func=function, args=[condition, _, _] as parts) if ast.unparse(function) == "tl.where":
            return parts[branch] if ast.unparse(condition) == ast.unparse(test) else node
    return node


def short_float(node: ast.expr) -> ast.expr:
    """A number of float32 by as few digits as tell it from others: 1e-06 for 9.999999974752427e-07."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, float) or abs(node.value) > 3e38:
        return node
    single = struct.Struct("f")
    packed = single.pack(node.value)
    if single.unpack(packed)[0] != node.value:
        return node
    shorter = (float(f"{node.value:.{digits}g}") for digits in range(1, 10))
    return ast.Constant(next(value for value in shorter if single.pack(value) == packed))


def plain_float(node: ast.expr) -> ast.expr:
    """The integer literal 0 as 0.0 where it meets floats."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(float(node.value))
    return node
