"""A problem as its benchmark constructs it: what `get_init_inputs()` returns becomes its constructor's defaults.

Where probing finds no constructor arguments by itself, or others. Sizes are made small and equal, so that what a
benchmark runs on a GPU runs within probing's limits.
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


def given_arguments(text: str) -> list[ast.expr]:
    """The items of the list that `get_init_inputs` returns, written out; none if it does more than that."""
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
                written = [_Written(constants).visit(item) for item in items]
                return written if all(map(_is_literal, written)) else []
    return []


def with_arguments(code: str, arguments: list[ast.expr]) -> tuple[str, ...]:
    """The code with these as the constructor's defaults, none if it does not take as many.

    Twice, where a number that is named as a size is small: probing takes other sizes for a row, whatever they were.
    """
    return tuple(dict.fromkeys(filter(None, (_constructed(code, arguments, sized) for sized in (False, True)))))


def _constructed(code: str, arguments: list[ast.expr], sized: bool) -> str:
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
                    given = zip(names, arguments, strict=False)
                    part.args.defaults = [*(_size(n, a) if sized else a for n, a in given), *kept]
                    return ast.unparse(ast.fix_missing_locations(tree))
    return ""


def _size(name: str, argument: ast.expr) -> ast.expr:
    whole = isinstance(argument, ast.Constant) and type(argument.value) is int
    return ast.Constant(_SIZE) if whole and _NAMES.search(name) else argument


class _Written(ast.NodeTransformer):
    """Constants in place of their names, and small sizes."""

    def __init__(self, constants: Mapping[str, ast.expr], depth: int = 8) -> None:
        self._constants, self._depth = constants, depth

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._constants or not self._depth:
            return node
        copy = parse_expression(ast.unparse(self._constants[node.id]))
        return _Written(self._constants, self._depth - 1).visit(copy)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        large = type(node.value) is int and node.value >= _LARGE
        return ast.Constant(_SIZE) if large else node


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True
