"""Blocks of a matmul as everyone writes them: `(m, k) @ (k, n)`, each operand loaded the way it is used.

Inductor keeps all axes in every block and reshapes for `tl.dot`. Here `k` is a plain range, laid out as a row in the
left operand's expressions and as a column in the right one's; what both need is computed for each.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from .axes import Axis
from .functions import call, parsed
from .passes import substitute, uses
from .raw import NotTidied
from .values import Value, literal


def lay_out(body: Sequence[ast.stmt], depth: Axis, values: Mapping[str, Value]) -> list[ast.stmt]:
    """The body with the operands of its one `tl.dot` as 2-D blocks.

    Raises:
        NotTidied: an operand mixes the axes in another way.
    """
    result: list[ast.stmt] = []
    for position, statement in enumerate(body):
        if isinstance(statement, ast.For):
            result.append(ast.For(statement.target, statement.iter, lay_out(statement.body, depth, values), [], lineno=0))
        elif (dot := _dot(statement)) is not None:
            operands = _operands(result, dot, depth, values)
            rest = [done for done in result if _result(done) not in _dependencies(result, dot.args[:2]) or _is_free(done, depth, values)]
            return [*rest, *operands, statement, *body[position + 1 :]]
        else:
            result.append(statement)
    return result


def _dot(statement: ast.stmt) -> ast.Call | None:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.dot":
            return node
    return None


def _result(statement: ast.stmt) -> str:
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _is_free(statement: ast.stmt, depth: Axis, values: Mapping[str, Value]) -> bool:
    """Whether the depth does not matter to what the statement assigns."""
    name = _result(statement)
    return name in values and depth.prefix not in values[name].axes


def _dependencies(body: Sequence[ast.stmt], roots: Sequence[ast.expr]) -> set[str]:
    needed = set(uses(roots))
    for statement in reversed(body):
        if _result(statement) in needed:
            needed |= set(uses([statement]))
    return needed


def _operands(
    body: Sequence[ast.stmt], dot: ast.Call, depth: Axis, values: Mapping[str, Value]
) -> list[ast.stmt]:
    """Statements for the left and for the right operand; sets the arguments of `dot`."""
    result: list[ast.stmt] = []
    shared = _dependencies(body, dot.args[:1]) & _dependencies(body, dot.args[1:2])
    for side, (layout, axis) in enumerate((("[None, :]", "y"), ("[:, None]", "x"))):
        root = dot.args[side]
        wrong = {"x", "y"} - {axis}
        renamed = {depth.index: parsed(f"{depth.index}{layout}"), depth.mask: parsed(f"{depth.mask}{layout}")}
        for statement in body:
            name = _result(statement)
            if name not in _dependencies(body, [root]) or _is_free(statement, depth, values):
                continue
            if values[name].axes & wrong:
                raise NotTidied("an operand of a matmul varies over an axis that it should not")
            new = substitute(copy.deepcopy(statement), renamed)
            if side == 1 and name in shared:
                assert isinstance(new, ast.Assign)
                new.targets = [ast.Name(f"{name}_t", ast.Store())]
                renamed[name] = ast.Name(f"{name}_t", ast.Load())
            result.append(new)
        known = values.get(ast.unparse(root), Value())
        value = substitute(ast.Expr(root), renamed).value  # type: ignore[attr-defined]
        if not {axis, depth.prefix} <= known.axes:
            blocks = ("YBLOCK", f"{depth.prefix.upper()}BLOCK") if side == 0 else (f"{depth.prefix.upper()}BLOCK", "XBLOCK")
            shape = f"({', '.join(blocks)})"
            is_number = literal(value) is not None
            value = call("tl.full", shape, value, "tl.float32") if is_number else call("tl.broadcast_to", value, shape)
        dot.args[side] = value
    return result
