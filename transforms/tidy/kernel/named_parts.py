"""Name what a kernel would compute twice: parts of indices, and sums that several accesses add to their pointers."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from ..syntax.ast_tools import called, copied, names_in, walk, with_body
from .addresses import ACCESSES
from .forms import is_index

SUM = "sum_"  # beginning of the names of sums


def with_named_parts(body: Sequence[ast.stmt], is_constant: Callable[[str], bool]) -> list[ast.stmt]:
    """Use the names of parts of indices wherever they are, and name sums that several accesses share.

    `is_constant` tells names with one value.
    """
    return _named_sums(_with_names(body, {}, is_constant), is_constant, count(1))


def _with_names(
    body: Sequence[ast.stmt], known: Mapping[str, str], is_constant: Callable[[str], bool]
) -> list[ast.stmt]:
    """The statements with names in place of the expressions that they are assigned: `known` has some already."""
    result: list[ast.stmt] = []
    names = dict(known)
    for statement in body:
        if isinstance(statement, ast.For):
            result.append(with_body(statement, _with_names(statement.body, names, is_constant)))
            continue
        new = _Replacement(names).visit(copied(statement))
        result.append(new)
        match new:
            case ast.Assign(targets=[ast.Name(name)], value=ast.BinOp() as value) if is_index(value) and all(
                map(is_constant, [name, *names_in(value)])
            ):
                names.setdefault(ast.unparse(value), name)
    return result


def _named_sums(body: Sequence[ast.stmt], is_constant: Callable[[str], bool], numbers: Iterator[int]) -> list[ast.stmt]:
    """The statements with a name for each sum that two accesses share. Those of loops are apart from those outside."""
    sums = Counter(ast.unparse(address.right) for statement in body for address in _addresses(statement, is_constant))
    names: dict[str, str] = {}
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):
            result.append(with_body(statement, _named_sums(statement.body, is_constant, numbers)))
            continue
        for address in _addresses(statement, is_constant):
            text = ast.unparse(address.right)
            if sums[text] > 1 and text not in names:
                names[text] = f"{SUM}{next(numbers)}"
                result.append(ast.Assign([ast.Name(names[text], ast.Store())], address.right, lineno=0))
            if text in names:
                address.right = ast.Name(names[text], ast.Load())
        result.append(statement)
    return result


def _addresses(statement: ast.stmt, is_constant: Callable[[str], bool]) -> Iterator[ast.BinOp]:
    """Pointers plus sums of products, outside of loops."""
    for node in walk(statement) if not isinstance(statement, ast.For) else ():
        match node:
            case ast.Call(args=[ast.BinOp(ast.Name(), ast.Add(), ast.BinOp() as added) as address, *_]):
                if called(node) in ACCESSES and is_index(added) and all(map(is_constant, names_in(added))):
                    yield address


class _Replacement(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = self._names.get(ast.unparse(node)) if self._names and is_index(node) else None
        return ast.Name(name, ast.Load()) if name else node
