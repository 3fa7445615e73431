"""Classify the expressions of a kernel as addresses, indices, masks and computed values."""

from __future__ import annotations

import ast
from enum import Enum

LOADS = ("load",)
STORES = ("store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg")
_INDICES = frozenset({"program_id", "num_programs", "arange", "cdiv"})
_SHAPED = frozenset({"where", "minimum", "maximum", "broadcast_to", "reshape", "expand_dims", "trans"})
_LIBRARIES = frozenset({"tl", "libdevice", "triton"})


class Role(Enum):
    """Purpose of an expression, in rising order: an operation has the highest role of its operands."""

    INDEX = 0
    MASK = 1
    VALUE = 2
    POINTER = 3


class Roles:
    """Roles of a kernel's names and expressions: a heuristic, from how they are computed."""

    def __init__(self, function: ast.FunctionDef) -> None:
        accesses = _accesses(function)
        pointers = {root.id for call in accesses if (root := _root(call.args[0])) is not None}
        parameters = [parameter.arg for parameter in function.args.args + function.args.kwonlyargs]
        self.parameters = frozenset(parameters)
        self.names = {name: Role.POINTER if name in pointers else Role.INDEX for name in parameters}
        if not pointers:  # a helper that kernels call with blocks
            self.names = {
                parameter.arg: Role.INDEX if parameter.annotation else Role.VALUE for parameter in function.args.args
            }
        for node in _in_order(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names[node.targets[0].id] = self.of(node.value)
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                self.names[node.target.id] = Role.INDEX
        self.addressing = frozenset(
            node.id for call in accesses for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)
        )

    def of(self, node: ast.expr) -> Role:
        match node:
            case ast.Constant(value=int()):
                return Role.INDEX
            case ast.Name(id=name):
                return self.names.get(name, Role.VALUE)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return Role.MASK
            case ast.BinOp(op=ast.Div()):
                return Role.VALUE
            case ast.BinOp(left=left, right=right):
                return max(self.of(left), self.of(right), key=lambda role: role.value)
            case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
                return self.of(inner)
            case ast.Call():
                return self._of_call(node)
            case _:
                return Role.VALUE

    def _of_call(self, call: ast.Call) -> Role:
        name = library_name(call)
        if name in _INDICES:
            return Role.INDEX
        if name in _SHAPED and call.args:
            parts = call.args[1:] if name == "where" else call.args[: 2 if name.endswith("imum") else 1]
            return max((self.of(part) for part in parts), key=lambda role: role.value)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and call.args:
            return Role.INDEX if dotted(call.args[0]).startswith("tl.int") else Role.VALUE
        return Role.VALUE


def library_name(call: ast.Call) -> str:
    """`load` for `tl.load(...)`; "" for calls of functions that are not Triton's."""
    root, *path = dotted(call.func).split(".")
    return path[-1] if root in _LIBRARIES and path else ""


def dotted(node: ast.expr) -> str:
    """`tl.math.exp` as a string; "" for expressions that are not names joined by dots."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            start = dotted(owner)
            return start and f"{start}.{name}"
    return ""


def _accesses(function: ast.FunctionDef) -> list[ast.Call]:
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args)
    return [call for call in calls if library_name(call) in LOADS + STORES]


def _in_order(function: ast.FunctionDef) -> list[ast.stmt]:
    statements = (node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function)
    return sorted(statements, key=lambda node: (node.lineno, node.col_offset))


def _root(address: ast.expr) -> ast.Name | None:
    """The leftmost operand of an address, if it is a name."""
    while isinstance(address, ast.BinOp):
        address = address.left
    return address if isinstance(address, ast.Name) else None
