"""Let a trace follow a module that reads values of tensors, which the trace does not know.

A value that follows from no input and no state, `torch.arange(0, 24, 8)[1]`, is known and used as it is. Any other
number read from a tensor, `x * scale.item()`, stays a tensor in arithmetic. A condition that only raises,
`assert (index >= 0).all()`, is taken to hold: the kernels are for calls that the module accepts, as with torch's own
assertions. Conditions about sizes are not touched: sizes are known, and the conditions become guards.
"""

from __future__ import annotations

import ast
import contextlib
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from unittest import mock

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch._functorch._aot_autograd.functional_utils import from_fun
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes

from .source_position import Place, is_inside, places, source_of, span

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"__int__": int, "__index__": operator.index, "__float__": float}
_LOGGING = ("warn", "print", "warning", "debug", "info")  # functions that only write a message


@contextlib.contextmanager
def values_unknown(module: nn.Module) -> Iterator[None]:
    """Let the trace of `module` continue where it reads a number, or the truth of a condition that only raises."""
    file, tree = source_of(module)
    tests = list(_tests(tree))

    def truth(self: Tensor) -> bool:
        if (known := _known(self)) is not None:
            return bool(known)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        for statement, test, passes in tests:
            if frame is not None and (place := _evaluated(frame, statement, test)):
                return _required(test, passes, place)
        return bool(Tensor.item(self))

    conversions = {name: _conversion(name, convert) for name, convert in _CONVERSIONS.items()}
    methods = {"item": _item, "__bool__": truth, "numpy": _numpy, "__array__": _numpy, **conversions}
    with contextlib.ExitStack() as stack:
        for name, method in methods.items():
            stack.enter_context(mock.patch.object(FunctionalTensor, name, method))
        yield


def _item(self: Tensor) -> Tensor | float:
    """The number if it is known, else a tensor without dimensions, which supports arithmetic and raises as a size."""
    if (known := _known(self)) is not None:
        return known.item()
    number = Tensor.item(self)
    if not free_unbacked_symbols(number):
        return number
    return self.reshape(()).to(torch.get_default_dtype()) if self.is_floating_point() else self.reshape(())


def _conversion(name: str, convert: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    """The method of this name that converts a tensor to a number; it is torch's own where the number is unknown."""
    plain = getattr(Tensor, name)

    def number(self: Tensor) -> Any:
        known = _known(self)
        return plain(self) if known is None else convert(known)

    return number


def _numpy(self: Tensor, *args: Any, **kwargs: Any) -> NDArray[Any]:
    known = _known(self)
    if known is None:
        raise TypeError("an array of a tensor that depends on values")
    return known


def _known(value: Tensor) -> NDArray[Any] | None:
    """The values of a tensor that follow from no input, no size of an input and no state; None for other tensors."""
    mode: Any = get_proxy_mode()  # of `make_fx`
    traced: Any = from_fun(value)
    traced = get_proxy_slot(traced, mode.tracer, None) if mode is not None else None
    if traced is None:
        return None
    result = traced.proxy.node
    needed = {result}
    waiting = [result]
    while waiting:
        node = waiting.pop()
        if node.op != "get_attr" and not _is_function(node):
            return None
        waiting += [source for source in node.all_input_nodes if source not in needed]
        needed.update(node.all_input_nodes)
    values: dict[Node, Any] = {}
    with _disable_current_modes(), torch.no_grad():
        for node in result.graph.nodes:
            if node in needed and node.op == "get_attr":
                values[node] = getattr(mode.tracer.root, node.target)
            elif node in needed:
                args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
                values[node] = node.target(*args, **kwargs)
        found = values[result]
        return (found.float() if found.dtype == torch.bfloat16 else found.clone()).numpy()


def _is_function(node: Node) -> bool:
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ())


def _tests(tree: ast.AST) -> Iterator[tuple[ast.stmt, ast.expr, bool]]:
    """Statements with a condition that only raises, the condition, and its value in a call that does not raise."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield node, test, True
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name("torch"), attr="_assert"), args=[test, *_])):
                yield node, test, True
            case ast.If(test=test, body=[*_, ast.Raise()]):
                yield node, test, False
            case ast.If(test=test, body=body, orelse=[]) if all(map(_only_logs, body)):
                yield node, test, False


def _only_logs(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(name) | ast.Attribute(attr=name))):
            return name in _LOGGING
    return False


def _evaluated(frame: FrameType, statement: ast.stmt, test: ast.expr) -> Place | None:
    """The part of `test` whose truth the frame is reading; None if it reads something else.

    For Python, the jump belongs to the whole statement; the instruction before it computed the condition.
    """
    found = places(frame.f_code, frame.f_lasti)
    if not (is_inside(found[-1], test) or found[-1] == span(statement)):
        return None
    return next((place for place in reversed(found) if is_inside(place, test)), None)


def _required(test: ast.expr, value: bool, place: Place) -> bool:
    """The value that the part of `test` at `place` must have for the whole to be `value`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _required(operand, not value, place)
        case ast.BoolOp(values=parts):
            for part in parts:
                if is_inside(place, part):
                    return _required(part, value, place)
    return value
