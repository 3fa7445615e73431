"""Make the result of a problem's `get_init_inputs()` the defaults of its constructor, as its benchmark constructs it.

Probing alone may find other arguments, or none. Sizes become small and equal, so that a problem made for a GPU runs
within probing's limits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import ENTRY_POINT

_LARGE, _SIZE = 16, 32  # every integer from _LARGE on becomes _SIZE
_NAMES = re.compile(r"(channels?|features?|filters?|planes|dim|width|(input|hidden|output|embed\w*|model)_size)$")
_ARGUMENTS = "get_init_inputs"


def init_inputs_of(text: str) -> list[ast.expr]:
    """The items of the list that `get_init_inputs` returns, as literals; empty if the function does more than that."""
    tree = parse(text)
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                constants[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                constants |= {n.id: value for n, value in zip(names, values, strict=True) if isinstance(n, ast.Name)}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name, body=[ast.Return(ast.List(elts=items))]) if name == _ARGUMENTS:
                literals = [_Literals(constants).visit(item) for item in items]
                return literals if all(map(_is_literal, literals)) else []
    return []


def with_defaults(code: str, arguments: list[ast.expr]) -> tuple[str, ...]:
    """The code with these arguments as the constructor's defaults; empty if their number does not fit.

    There is a second version where a parameter named like a size has a small value: with the size that rows have.
    """
    return tuple(dict.fromkeys(filter(None, (_with_defaults(code, arguments, sized) for sized in (False, True)))))


def _with_defaults(code: str, arguments: list[ast.expr], sized: bool) -> str:
    tree = parse(code)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == ENTRY_POINT:
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    places = len(part.args.posonlyargs) + len(part.args.args) - 1
                    kept = part.args.defaults[max(0, len(part.args.defaults) - places + len(arguments)) :]
                    if not 0 < len(arguments) <= places or len(arguments) + len(kept) < places:
                        return ""
                    names = [argument.arg for argument in (*part.args.posonlyargs, *part.args.args)][1:]
                    pairs = zip(names, arguments, strict=False)
                    part.args.defaults = [*(_size(n, a) if sized else a for n, a in pairs), *kept]
                    return ast.unparse(ast.fix_missing_locations(tree))
    return ""


def _size(name: str, argument: ast.expr) -> ast.expr:
    whole = isinstance(argument, ast.Constant) and type(argument.value) is int
    return ast.Constant(_SIZE) if whole and _NAMES.search(name) else argument


class _Literals(ast.NodeTransformer):
    """Replaces names by their constants, and large integers by `_SIZE`."""

    def __init__(self, constants: Mapping[str, ast.expr], depth: int = 8) -> None:
        self._constants, self._depth = constants, depth

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._constants or not self._depth:
            return node
        copy = parse_expression(ast.unparse(self._constants[node.id]))
        return _Literals(self._constants, self._depth - 1).visit(copy)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        large = type(node.value) is int and node.value >= _LARGE
        return ast.Constant(_SIZE) if large else node


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True
