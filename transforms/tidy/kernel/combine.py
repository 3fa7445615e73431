"""Tidy the combine functions of scans and reductions that Inductor defines for a kernel."""

from __future__ import annotations

import ast
import copy
import re

from ..syntax.ast_tools import called, keywords_of, rename, unused_name
from . import passes
from .triton_functions import translate

_ARGUMENT = re.compile(r"arg(\d)_(\d)")  # operand, and which of its values


def tidy_combine(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function as `combine`, with operands `a` and `b`, or `a_0`, `a_1`, `b_0`, `b_1` where each has two values.

    Raises:
        NotTidied: it calls an unknown helper.
    """
    arguments = [argument.arg for argument in function.args.args]
    body = [_Translation().visit(statement) for statement in copy.deepcopy(function.body)]
    body = passes.inline(body, lambda name: 0 if name in arguments else 1)
    names = _names(arguments)
    taken = set(names.values())
    for statement in body:
        if isinstance(statement, ast.Assign):
            names[ast.unparse(statement.targets[0])] = unused_name("value", taken)
    docstring = ast.Expr(ast.Constant("What two neighbours of a scan or a reduction make."))
    return ast.FunctionDef(
        name="combine",
        args=ast.arguments([], [ast.arg(names[argument]) for argument in arguments], None, [], [], None, []),
        body=[docstring, *(rename(statement, names) for statement in body)],
        decorator_list=function.decorator_list,
        returns=None,
        lineno=0,
    )


def _names(arguments: list[str]) -> dict[str, str]:
    parts = {argument: found.groups() for argument in arguments if (found := _ARGUMENT.fullmatch(argument))}
    is_single = all(value == "0" for _, value in parts.values())
    return {
        argument: "ab"[int(operand)] if is_single else f"{'ab'[int(operand)]}_{value}"
        for argument, (operand, value) in parts.items()
    }


class _Translation(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return translate(called(node), node.args, keywords_of(node)) or node
