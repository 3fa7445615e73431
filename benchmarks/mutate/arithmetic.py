"""Wrong arithmetic on values, as opposed to addresses and masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, kernel_operator
from .roles import Role
from .source_edits import Edit, Kernel, argument

_SYMBOLS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}
_OTHER = {"+": "*", "*": "+"}
_UNARY = ("exp", "log", "rsqrt", "sqrt", "sqrt_rn", "sigmoid", "erf", "tanh", "abs", "sin", "cos", "log1p", "expm1")
_CONFUSED = {
    "exp": "exp2",
    "log": "log2",
    "rsqrt": "sqrt",
    "sqrt": "rsqrt",
    "sqrt_rn": "rsqrt",
    "sin": "cos",
    "cos": "sin",
    "sigmoid": "exp",
    "maximum": "minimum",
    "minimum": "maximum",
}


def _operations(kernel: Kernel) -> Iterator[tuple[ast.BinOp, str]]:
    for node in kernel.operations(Role.VALUE, *_SYMBOLS):
        yield node, _SYMBOLS[type(node.op)]


@kernel_operator(Fault.ARITHMETIC, "the inverse operator")
def inverse_operator(kernel: Kernel) -> Iterator[Edit]:
    for node, symbol in _operations(kernel):
        yield kernel.source.operator(node, symbol, _INVERSE[symbol])


@kernel_operator(Fault.ARITHMETIC, "a sum for a product or the reverse")
def other_operator(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for node, symbol in _operations(kernel):
        if symbol in _OTHER:
            text = f"({source.grouped(node.left)} {_OTHER[symbol]} {source.grouped(node.right)})"
            yield source.replace(node, text)


@kernel_operator(Fault.ARITHMETIC, "operands in the wrong order")
def operands_swapped(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for node, symbol in _operations(kernel):
        if symbol in "-/":
            yield source.replace(node, f"({source.grouped(node.right)} {symbol} {source.grouped(node.left)})")


@kernel_operator(Fault.ARITHMETIC, "an operand left out")
def term_dropped(kernel: Kernel) -> Iterator[Edit]:
    for node, _ in _operations(kernel):
        for kept in (node.left, node.right):
            if kernel.roles.of(kept) is Role.VALUE:
                yield kernel.source.replace(node, kernel.source.grouped(kept))


@kernel_operator(Fault.ARITHMETIC, "the wrong sign")
def negated(kernel: Kernel) -> Iterator[Edit]:
    starts = list(kernel.calls("zeros", "full"))  # initial values of sums, whose sign has no effect
    values = [value for _, value in kernel.assigned(Role.VALUE) if value not in starts]
    for value in [*values, *kernel.stored("store")]:
        yield kernel.source.replace(value, f"-{kernel.source.grouped(value)}")


@kernel_operator(Fault.ARITHMETIC, "another constant")
def constant_changed(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.nodes(ast.Constant):
        if not isinstance(node.value, float):
            continue
        if node.value == 0:
            others = [0.01]
        elif abs(node.value) < 1e-3:  # an epsilon
            others = [0.0, node.value * 10, node.value * 1000]
        else:
            others = [node.value * 1.001, node.value * 2]
        for other in others:
            yield kernel.source.replace(node, repr(other))


@kernel_operator(Fault.ARITHMETIC, "another function")
def function_confused(kernel: Kernel) -> Iterator[Edit]:
    for name, other in _CONFUSED.items():
        for call in kernel.calls(name):
            assert isinstance(call.func, ast.Attribute)
            if kernel.roles.of(call) is Role.VALUE:
                yield kernel.source.replace(call.func, f"tl.{other}")


@kernel_operator(Fault.ARITHMETIC, "a function left out")
def function_dropped(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls(*_UNARY):
        if call.args:
            yield kernel.source.replace(call, kernel.source.grouped(call.args[0]))


@kernel_operator(Fault.ARITHMETIC, "the branches of a choice swapped")
def branches_swapped(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("where"):
        if len(call.args) == 3:
            condition, yes, no = call.args
            yield kernel.source.call(call, [condition, no, yes])


@kernel_operator(Fault.ARITHMETIC, "NaN not passed on")
def nan_lost(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("maximum", "minimum", "clamp"):
        if argument(call, 9, "propagate_nan") is not None:
            yield kernel.source.without(call, next(k for k in call.keywords if k.arg == "propagate_nan"))
