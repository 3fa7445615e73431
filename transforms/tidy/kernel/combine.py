"""Combine functions of scans and reductions, which Inductor writes beside a kernel, in plain Triton."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping

from . import passes
from .kernel_names import free
from .triton_functions import translate

_ARGUMENT = re.compile(r"arg(\d)_(\d)")  # operand, and which of its values


def tidy_combine(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function as `combine`: its operands are `a` and `b`, or `a_0`, `a_1`, `b_0`, `b_1` where each has two values.

    Raises:
        NotTidied: it calls a helper that is not known.
    """
    given = [argument.arg for argument in function.args.args]
    body = [_Translation().visit(statement) for statement in copy.deepcopy(function.body)]
    body = passes.inline(body, lambda other: 0 if other in given else 1)
    names = _names(given)
    taken = set(names.values())
    for statement in body:
        if isinstance(statement, ast.Assign):
            names[ast.unparse(statement.targets[0])] = free("value", taken)
    docstring = ast.Expr(ast.Constant("What two neighbours of a scan or a reduction make."))
    return ast.FunctionDef(
        name="combine",
        args=ast.arguments([], [ast.arg(names[argument]) for argument in given], None, [], [], None, []),
        body=[docstring, *(_Renaming(names).visit(statement) for statement in body)],
        decorator_list=function.decorator_list,
        returns=None,
        lineno=0,
    )


def _names(arguments: list[str]) -> dict[str, str]:
    parts = {argument: found.groups() for argument in arguments if (found := _ARGUMENT.fullmatch(argument))}
    is_single = all(value == "0" for _, value in parts.values())
    letters = {argument: "ab"[int(operand)] for argument, (operand, _) in parts.items()}
    return {
        argument: letters[argument] if is_single else f"{letters[argument]}_{value}"
        for argument, (_, value) in parts.items()
    }


class _Translation(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        return translate(ast.unparse(node.func), node.args, keywords) or node


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)
