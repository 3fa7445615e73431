"""Evaluate the statements of host code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from torch import Tensor

from kernelquarry.filters.language.scopes import passed

from . import attributes, names
from .expressions import BINARY, Expressions
from .launch_plan import Iteration, LoopRun
from .recording import ERRORS, call_torch
from .values import Context, Descriptor, Layer, Native, Raised, Record, Scope, Unsupported


class Return(Exception):
    """Leaves a function with its value."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Statements(Expressions):
    """The evaluation of statements."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[Record] = []  # records whose constructor runs

    def statements(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        for node in body:
            self.count()
            self.evaluated.add(node)
            self._statement(node, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Expr():
                if self.definitions.writes_text(node.value):
                    for part in passed(node.value):
                        self._message(part, scope)
                elif not isinstance(node.value, ast.Constant):
                    self.expression(node.value, scope)
            case ast.Assign():
                value = self.expression(node.value, scope)
                for target in node.targets:
                    self.assign(target, value, scope)
            case ast.AnnAssign():
                if node.value is not None:
                    self.assign(node.target, self.expression(node.value, scope), scope)
            case ast.AugAssign():
                self._change(node, scope)
            case ast.If():
                self.statements(node.body if self.condition(node.test, scope) else node.orelse, scope)
            case ast.For():
                self._loop(node, self.iterate(self.expression(node.iter, scope)), scope)
            case ast.While():
                self._loop(node, iter(lambda: self.condition(node.test, scope), False), scope)
            case ast.Return():
                raise Return(None if node.value is None else self.expression(node.value, scope))
            case ast.Assert():
                if not self.condition(node.test, scope):
                    raise Raised(f"AssertionError: line {node.lineno}")
            case ast.Raise():
                raise Raised(f"{ast.unparse(node.exc).partition('(')[0] if node.exc else 'error'}: line {node.lineno}")
            case ast.With():
                for item in node.items:
                    context = self.expression(item.context_expr, scope)
                    if not isinstance(context, Native) or context.name not in names.MARKS:
                        raise Unsupported(f"with {ast.unparse(item.context_expr)}")
                self.statements(node.body, scope)
            case ast.FunctionDef():
                scope.names[node.name] = self.decorated(node, scope)
            case ast.Delete():
                for target in node.targets:
                    if not isinstance(target, ast.Name) or target.id not in scope.names:
                        raise Unsupported(f"del {ast.unparse(target)}")
                    del scope.names[target.id]
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Pass():
                pass
            case _:
                raise Unsupported(f"a statement {type(node).__name__}")

    def _message(self, node: ast.expr, scope: Scope) -> None:
        """Evaluate the values of a text that is written, but not the text."""
        match node:
            case ast.JoinedStr():
                for each in node.values:
                    if isinstance(each, ast.FormattedValue):
                        self._message(each.value, scope)
            case ast.BinOp(left=left, right=right):
                self._message(left, scope)
                self._message(right, scope)
            case ast.Tuple():
                for each in node.elts:
                    self._message(each, scope)
            case ast.Call(func=ast.Attribute(value=text, attr="format")):
                for each in (text, *passed(node)):
                    self._message(each, scope)
            case _:
                if isinstance(self.expression(node, scope), Layer | Record):
                    raise Unsupported("the text of a module in a message")

    def _loop(self, node: ast.For | ast.While, values: Iterator[Any], scope: Scope) -> None:
        run, around = LoopRun(node.lineno), self.iteration
        around.loops.append(run)
        try:
            for value in values:
                self.count()
                self.iteration = Iteration(self.position())
                run.iterations.append(self.iteration)
                if isinstance(node, ast.For):
                    self.assign(node.target, value, scope)
                with suppress(_Continue):
                    self.statements(node.body, scope)
        except _Break:
            return
        finally:
            run.end, self.iteration = self.position(), around
        self.statements(node.orelse, scope)

    def _change(self, node: ast.AugAssign, scope: Scope) -> None:
        """An assignment with an operator."""
        name = BINARY[type(node.op)]
        in_place = f"i{name.rstrip('_')}"
        function = getattr(operator, in_place)
        match node.target:
            case ast.Name():
                old = self._name(node.target, scope)
                self.check_change(old)
                changed = names.arithmetic(in_place, function, old, self.expression(node.value, scope))
                self.note_quotient(node, changed)
                scope.names[node.target.id] = self.counted(changed)
            case ast.Subscript():
                owner, index = self.expression(node.target.value, scope), self.expression(node.target.slice, scope)
                old = self.item(owner, index)
                self.check_change(old)
                self._set_item(
                    owner, index, names.arithmetic(in_place, function, old, self.expression(node.value, scope))
                )
            case ast.Attribute():
                owner = self.expression(node.target.value, scope)
                old = attributes.attribute(self, owner, node.target.attr)
                self.check_change(old)
                self._set_attribute(
                    node.target, owner, names.arithmetic(in_place, function, old, self.expression(node.value, scope))
                )

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name():
                scope.names[target.id] = value
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, names.drained(self.iterate(value)), scope)
            case ast.Subscript():
                owner = self.expression(target.value, scope)
                self._set_item(owner, self.expression(target.slice, scope), value)
            case ast.Attribute():
                self._set_attribute(target, self.expression(target.value, scope), value)
            case _:
                raise Unsupported(f"an assignment to {ast.unparse(target)}")

    def _unpack(self, targets: Sequence[ast.expr], values: list[Any], scope: Scope) -> None:
        star = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        if star is not None and len(values) >= len(targets) - 1:
            after = len(targets) - star - 1
            values = [*values[:star], values[star : len(values) - after], *values[len(values) - after :]]
        if len(values) != len(targets):
            raise Raised(f"ValueError: {len(values)} values for {len(targets)} names")
        for target, value in zip(targets, values, strict=True):
            self.assign(target.value if isinstance(target, ast.Starred) else target, value, scope)

    def _set_item(self, owner: Any, index: Any, value: Any) -> None:
        if isinstance(owner, Tensor):
            call_torch("torch.Tensor.__setitem__", Tensor.__setitem__, (owner, index, value), {})
        elif isinstance(owner, list | dict):
            self.check_change(owner)
            try:
                owner[index] = value
            except ERRORS as error:
                raise Raised(f"{type(error).__name__}: {error}") from error
        else:
            raise Unsupported(f"an item of a {type(owner).__name__} that is set")

    def _set_attribute(self, target: ast.Attribute, owner: Any, value: Any) -> None:
        if isinstance(owner, Context) or (isinstance(owner, Record) and owner in self._made):
            owner.values[target.attr] = value
        elif isinstance(owner, Descriptor) and target.attr == "block_shape":
            owner.block_shape = value
        else:
            raise Unsupported(f"an assignment to {ast.unparse(target)}")
