"""Choices among values, without those that an outer choice decides: `cat` chooses among its inputs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence

from ..syntax.ast_tools import called, copied, names_in, walk, with_body
from .forms import conjuncts

_OPPOSITE = {ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_SIGN = {ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
Facts = frozenset[str]  # comparisons that hold, as source


def decided_choices(body: Sequence[ast.stmt], is_integer: Callable[[ast.expr], bool]) -> list[ast.stmt]:
    """Write `tl.where(t, tl.where(t, a, b), c)` as `tl.where(t, a, c)`, also through names that are used once.

    Outer conditions decide an inner one that they state or contradict: `col >= n` where `col < n` is false. Only of
    integers is one of the two true.
    """
    return _rewritten(body, _Choices(body, is_integer))


def _rewritten(body: Sequence[ast.stmt], choices: _Choices) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.For():
                statement = with_body(statement, _rewritten(statement.body, choices))
            case ast.Assign(targets=[ast.Name(name) as target], value=value):
                value = choices.taken(value, frozenset())
                statement = ast.copy_location(ast.Assign([target], value), statement)
                choices.define(name, value)
        result.append(statement)
    return result


class _Choices:
    """The values of names that are assigned once, from such names."""

    def __init__(self, body: Sequence[ast.stmt], is_integer: Callable[[ast.expr], bool]) -> None:
        self._is_integer = is_integer
        names = [node for part in body for node in walk(part) if isinstance(node, ast.Name)]
        self._stored = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        self._read = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
        self._values: dict[str, ast.expr] = {}

    def define(self, name: str, value: ast.expr) -> None:
        if all(self._stored[each] <= 1 for each in (name, *names_in(value))):
            self._values[name] = value

    def taken(self, node: ast.expr, facts: Facts) -> ast.expr:
        """The value where these facts hold, by as few choices as they leave."""
        match node:
            case ast.Name(name) if self._read[name] == 1 and name in self._values:
                value = self.taken(self._values[name], facts)
                return copied(value) if ast.unparse(value) != ast.unparse(self._values[name]) else node
            case ast.Call(func=function, args=[test, yes, no]) if called(node) == "tl.where":
                if (decided := self._decided(test, facts)) is not None:
                    return self.taken(yes if decided else no, facts)
                sides = ((yes, True), (no, False))
                chosen = (self.taken(each, facts | self._facts(test, facts, holds)) for each, holds in sides)
                return ast.copy_location(ast.Call(function, [test, *chosen], []), node)
            case ast.Call(func=function, args=args, keywords=keywords):  # it may mix elements
                parts = [self.taken(each, frozenset()) for each in args]
                return ast.copy_location(ast.Call(function, parts, keywords), node)
            case ast.BinOp(left, operator, right):
                both = self.taken(left, facts), self.taken(right, facts)
                return ast.copy_location(ast.BinOp(both[0], operator, both[1]), node)
            case ast.UnaryOp(operator, operand):
                return ast.copy_location(ast.UnaryOp(operator, self.taken(operand, facts)), node)
        return node

    def _parts(self, test: ast.expr) -> list[ast.expr]:
        """The comparisons that a condition joins by `&`."""
        while isinstance(test, ast.Name) and test.id in self._values:
            test = self._values[test.id]
        parts = conjuncts(test)
        return parts if len(parts) == 1 else [part for each in parts for part in self._parts(each)]

    def _decided(self, test: ast.expr, facts: Facts) -> bool | None:
        parts = self._parts(test)
        if any(self._text(part, holds=False) in facts for part in parts):
            return False
        return True if all(self._text(part) in facts for part in parts) else None

    def _facts(self, test: ast.expr, facts: Facts, holds: bool) -> Facts:
        """The comparisons that follow from a condition, or from its opposite, where `facts` hold."""
        parts = self._parts(test)
        if holds:
            return frozenset(map(self._text, parts))
        unknown = [part for part in parts if self._text(part) not in facts]
        return frozenset(self._text(part, holds=False) for part in unknown) if len(unknown) == 1 else frozenset()

    def _text(self, part: ast.expr, holds: bool = True) -> str:
        """A comparison as source, or its opposite."""
        match part:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _SIGN:
                sides = self._index(left), self._index(right)
                if holds or all(map(self._is_integer, sides)):
                    sign = (_SIGN if holds else _OPPOSITE)[type(operator)]
                    return f" {sign} ".join(map(ast.unparse, sides))
        return ast.unparse(part) if holds else f"not ({ast.unparse(part)})"

    def _index(self, node: ast.expr) -> ast.expr:
        """One side of a comparison, without casts to int64."""
        match node:
            case ast.Name(name) if name in self._values:
                return self._index(self._values[name])
            case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[dtype]) if ast.unparse(dtype) == "tl.int64":
                return self._index(value)
        return node
