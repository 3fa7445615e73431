"""What a module does with the values of tensors, which a trace does not know.

A number that is taken from a tensor, `x * scale.item()`, is computed with as a tensor. A condition that only raises,
`assert (index >= 0).all()`, is taken to be as the module needs it: the kernels are for calls that it takes, as with
what torch itself asserts. Conditions about sizes are not touched: they are known, and become guards.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from types import FrameType
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from .source import Place, is_inside, places, source_of, span

_TELLING = ("warn", "print", "warning", "debug", "info")  # functions that only tell


@contextlib.contextmanager
def values_unknown(module: nn.Module) -> Iterator[None]:
    """Lets the trace of `module` go on where a tensor is asked for its number, or for its truth by what only raises."""
    file, tree = source_of(module)
    tests = list(_tests(tree))

    def truth(self: Tensor) -> bool:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        for statement, test, passes in tests:
            if frame is not None and (place := _asked(frame, statement, test)):
                return _wanted(test, passes, place)
        return bool(Tensor.item(self))

    with (
        mock.patch.object(FunctionalTensor, "item", _item, create=True),
        mock.patch.object(FunctionalTensor, "__bool__", truth),
    ):
        yield


def _item(self: Tensor) -> Tensor | float:
    """A tensor of no dimensions where the number is not known: it takes part in arithmetic as a number does, and what
    cannot be done with it, such as a size, raises."""
    number = Tensor.item(self)
    if not free_unbacked_symbols(number):
        return number
    return self.reshape(()).to(torch.get_default_dtype()) if self.is_floating_point() else self.reshape(())


def _tests(tree: ast.AST) -> Iterator[tuple[ast.stmt, ast.expr, bool]]:
    """Statements that have a condition, and how it must turn out for the module to go on."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield node, test, True
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name("torch"), attr="_assert"), args=[test, *_])):
                yield node, test, True
            case ast.If(test=test, body=[*_, ast.Raise()]):
                yield node, test, False
            case ast.If(test=test, body=body, orelse=[]) if all(map(_only_tells, body)):
                yield node, test, False


def _only_tells(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(name) | ast.Attribute(attr=name))):
            return name in _TELLING
    return False


def _asked(frame: FrameType, statement: ast.stmt, test: ast.expr) -> Place | None:
    """The part of `test` that is asked for its truth at the moment, if it is one of this test.

    What jumps is, for Python, the whole statement; what it jumps on was computed just before.
    """
    found = places(frame.f_code, frame.f_lasti)
    if not (is_inside(found[-1], test) or found[-1] == span(statement)):
        return None
    return next((place for place in reversed(found) if is_inside(place, test)), None)


def _wanted(test: ast.expr, value: bool, place: Place) -> bool:
    """What the part of `test` at `place` must be for the whole to be `value`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _wanted(operand, not value, place)
        case ast.BoolOp(values=parts):
            for part in parts:
                if is_inside(place, part):
                    return _wanted(part, value, place)
    return value
