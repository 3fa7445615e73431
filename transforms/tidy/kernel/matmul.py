"""Blocks of a matmul as everyone writes them: `(m, k) @ (k, n)`, each operand loaded the way it is used.

Inductor keeps all axes in every block and reshapes for `tl.dot`. Here `k` is a plain range, laid out as a row in the
left operand's expressions and as a column in the right one's; what both need is computed for each.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..read.inductor_source import NotTidied
from ..syntax.ast_tools import copied, walk
from .iteration_space import Axis
from .passes import substitute, uses
from .triton_functions import call, parsed
from .value_types import Value, literal

_LAYOUTS = (("[None, :]", "y", "x"), ("[:, None]", "x", "y"))  # of the depth; the operand's other axis; not its axis


def lay_out(body: Sequence[ast.stmt], depth: Axis, values: Mapping[str, Value]) -> list[ast.stmt]:
    """The body with the operands of its `tl.dot`s as 2-D blocks.

    Raises:
        NotTidied: an operand mixes the axes in another way.
    """
    dots = [dot for statement in body if not isinstance(statement, ast.For) for dot in _dots(statement)]
    needed = [_dependencies(body, [dot.args[side] for dot in dots]) for side in (0, 1)]
    renamed = [
        {depth.index: parsed(f"{depth.index}{layout}"), depth.mask: parsed(f"{depth.mask}{layout}")}
        for layout, _, _ in _LAYOUTS
    ]
    result: list[ast.stmt] = []
    for statement in body:
        name = _result(statement)
        if isinstance(statement, ast.For):
            inner = lay_out(statement.body, depth, values)
            result.append(ast.For(statement.target, statement.iter, inner, [], lineno=0))
        elif found := _dots(statement):
            for dot in found:
                dot.args[:2] = [_operand(dot.args[side], side, renamed, depth, values) for side in (0, 1)]
            result.append(statement)
        elif depth.prefix not in values.get(name, Value()).axes:
            result.append(statement)
        else:
            for side in (0, 1):
                if name in needed[side]:
                    result.append(_laid_out(statement, side, name in needed[0], renamed, values))
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


def _dots(statement: ast.stmt) -> list[ast.Call]:
    return [node for node in walk(statement) if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.dot"]


def _result(statement: ast.stmt) -> str:
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _dependencies(body: Sequence[ast.stmt], roots: Sequence[ast.expr]) -> set[str]:
    needed = set(uses(roots))
    for statement in reversed(body):
        if _result(statement) in needed:
            needed |= set(uses([statement]))
    return needed


def _laid_out(
    statement: ast.stmt, side: int, is_left: bool, renamed: list[dict[str, ast.expr]], values: Mapping[str, Value]
) -> ast.stmt:
    """The statement for one operand; under another name if the left one has it too."""
    name = _result(statement)
    if _LAYOUTS[side][2] in values[name].axes:
        raise NotTidied("an operand of a matmul varies over an axis that it should not")
    new = substitute(copied(statement), renamed[side])
    if side == 1 and is_left:
        assert isinstance(new, ast.Assign)
        new.targets = [ast.Name(f"{name}_t", ast.Store())]
        renamed[1][name] = ast.Name(f"{name}_t", ast.Load())
    return new


def _operand(
    root: ast.expr, side: int, renamed: list[dict[str, ast.expr]], depth: Axis, values: Mapping[str, Value]
) -> ast.expr:
    known = values.get(ast.unparse(root), Value())
    value = substitute(ast.Expr(root), renamed[side]).value  # type: ignore[attr-defined]
    if {_LAYOUTS[side][1], depth.prefix} <= known.axes:
        return value
    wide = shape(frozenset({_LAYOUTS[side][1], depth.prefix}))
    if literal(value) is not None:
        return call("tl.full", wide, value, "tl.float32")
    return call("tl.broadcast_to", value, wide)
