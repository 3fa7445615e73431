"""Lay out the blocks of a matmul as `(m, k) @ (k, n)`, each operand loaded in the layout of its use.

Inductor keeps all axes in every block and reshapes for `tl.dot`. Here `k` is a plain range, laid out as a row in the
left operand's expressions and as a column in the right operand's; values that both need are computed for each.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..refusals import NotTidied
from ..syntax.ast_tools import calls_of, copied, substitute, with_body
from .iteration_space import Axis
from .passes import uses
from .triton_functions import call, parsed
from .value_types import Value, literal


@dataclass(frozen=True, slots=True)
class _Side:
    """One operand of a product."""

    axis: str  # the operand's other axis
    foreign: str  # the other operand's axis
    renamed: dict[str, ast.expr]  # values in this operand's layout


def lay_out(body: Sequence[ast.stmt], depth: Axis, values: Mapping[str, Value]) -> list[ast.stmt]:
    """The body with the operands of its `tl.dot`s as 2-D blocks; `depth` is the axis `k`.

    Raises:
        NotTidied: an operand varies over the other operand's axis.
    """
    sides = [_side("[None, :]", "y", "x", depth), _side("[:, None]", "x", "y", depth)]
    dots = [dot for statement in body if not isinstance(statement, ast.For) for dot in calls_of("tl.dot", statement)]
    needed = [_dependencies(body, [dot.args[side] for dot in dots]) for side in (0, 1)]
    result: list[ast.stmt] = []
    for statement in body:
        name = _result(statement)
        if isinstance(statement, ast.For):
            result.append(with_body(statement, lay_out(statement.body, depth, values)))
        elif found := calls_of("tl.dot", statement):
            for dot in found:
                dot.args[:2] = [_operand(*pair, depth, values) for pair in zip(dot.args, sides, strict=False)]
            result.append(statement)
        elif depth.prefix not in values.get(name, Value()).axes:
            result.append(statement)
        else:
            for side, names in zip(sides, needed, strict=True):
                if name in names:
                    is_second = side is sides[1] and name in needed[0]
                    result.append(_laid_out(statement, side, is_second, values))
    return result


def shape(over: frozenset[str]) -> str:
    """The shape of a block that varies over these axes."""
    match sorted(over):
        case ["r0_", "x"]:
            return "(R0_BLOCK, XBLOCK)"
        case ["r0_", "y"]:
            return "(YBLOCK, R0_BLOCK)"
        case axes if "r0_" not in axes:
            return f"({'YBLOCK' if 'y' in axes else 1}, {'XBLOCK' if 'x' in axes else 1})"
    raise NotTidied(f"a block of a matmul over {', '.join(sorted(over))}")


def _side(layout: str, axis: str, foreign: str, depth: Axis) -> _Side:
    return _Side(axis, foreign, {name: parsed(f"{name}{layout}") for name in (depth.index, depth.mask)})


def _result(statement: ast.stmt) -> str:
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _dependencies(body: Sequence[ast.stmt], roots: Sequence[ast.expr]) -> set[str]:
    needed = set(uses(roots))
    for statement in reversed(body):
        if _result(statement) in needed:
            needed |= set(uses([statement]))
    return needed


def _laid_out(statement: ast.stmt, side: _Side, is_second: bool, values: Mapping[str, Value]) -> ast.stmt:
    """The statement in one operand's layout; the second one of two gets another name."""
    name = _result(statement)
    if side.foreign in values[name].axes:
        raise NotTidied("an operand of a matmul varies over an axis that it should not")
    new = substitute(copied(statement), side.renamed)
    if is_second:
        assert isinstance(new, ast.Assign)
        new.targets = [ast.Name(f"{name}_t", ast.Store())]
        side.renamed[name] = ast.Name(f"{name}_t", ast.Load())
    return new


def _operand(root: ast.expr, side: _Side, depth: Axis, values: Mapping[str, Value]) -> ast.expr:
    known = values.get(ast.unparse(root), Value())
    value = substitute(ast.Expr(root), side.renamed).value
    if {side.axis, depth.prefix} <= known.axes:
        return value
    wide = shape(frozenset({side.axis, depth.prefix}))
    if literal(value) is not None:
        return call("tl.full", wide, value, "tl.float32")
    return call("tl.broadcast_to", value, wide)
