"""A candidate's parsed source, with the byte span of each node and edits that replace one span."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import StateSpec, Workload

from .roles import Role, Roles, dotted, library_name

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef

_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replacement of the bytes from `start` to `end` of the UTF-8 source by `text`."""

    start: int
    end: int
    text: str


class Source:
    """A candidate's file, its first workload and its module's state, by name."""

    def __init__(self, code: str, workload: Workload | None = None, state: Sequence[StateSpec] = ()) -> None:
        """Parse `code`. Raises: SyntaxError."""
        self._workload = workload
        self.state = {spec.name: spec for spec in state}
        self._bytes = code.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.tree = parse(code)
        functions = [node for node in self.tree.body if isinstance(node, Function)]
        self.kernels = [Kernel(self, node) for node in functions if any(map(_is_jit, node.decorator_list))]

    @cached_property
    def form(self) -> str:
        """Dump of the syntax tree, equal for sources that differ in layout only."""
        return ast.dump(self.tree)

    @cached_property
    def forward(self) -> Function | None:
        """The forward method of the last class that has one, since helper classes come before `ModelNew`."""
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        methods = [node for owner in classes for node in owner.body if isinstance(node, Function)]
        return next((node for node in reversed(methods) if node.name == "forward"), None)

    @cached_property
    def forward_nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.forward)) if self.forward else []

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the workload's tensors that are passed to forward directly, by parameter name."""
        if self._workload is None or self.forward is None:
            return {}
        names = [parameter.arg for parameter in self.forward.args.args[1:]]
        given = dict(zip(names, json.loads(self._workload.args), strict=False)) | json.loads(self._workload.kwargs)
        tensors = {name: value["tensor"] for name, value in given.items() if is_tensor(value)}
        return {name: self._workload.tensors[index].shape for name, index in tensors.items()}

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First and last byte of a node, without parentheses around it."""
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg)
        assert node.end_lineno is not None and node.end_col_offset is not None  # it was parsed
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def between(self, start: int, end: int) -> str:
        return self._bytes[start:end].decode()

    def text(self, node: ast.AST) -> str:
        return self.between(*self.span(node))

    def grouped(self, node: ast.AST) -> str:
        """The expression's text, in parentheses unless it can be any operator's operand as it is."""
        return self.text(node) if isinstance(node, _ATOMS) else f"({self.text(node)})"

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(*self.span(node), text)

    def call(self, call: ast.Call, arguments: list[ast.expr]) -> Edit:
        """Replace the positional arguments of a call, and keep its keywords."""
        parts = [self.text(part) for part in (*arguments, *call.keywords)]
        return self.replace(call, f"{self.text(call.func)}({', '.join(parts)})")

    def without(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        """Remove one argument of a call."""
        start, end = self.span(argument)
        before = self._bytes[:start].rstrip()
        if isinstance(argument, ast.keyword) and before.endswith(b","):
            return Edit(len(before) - 1, end, "")
        parts = [self.text(part) for part in (*call.args, *call.keywords) if part is not argument]
        return self.replace(call, f"{self.text(call.func)}({', '.join(parts)})")

    def operator(self, node: ast.BinOp, old: str, new: str) -> Edit:
        """Replace the operator of an operation, and keep its operands."""
        start, end = self.span(node.left)[1], self.span(node.right)[0]
        return Edit(start, end, self.between(start, end).replace(old, new, 1))

    def apply(self, edit: Edit) -> str:
        return (self._bytes[: edit.start] + edit.text.encode() + self._bytes[edit.end :]).decode()

    def line(self, edit: Edit) -> int:
        """1-based number of the line in which the edit starts."""
        return self._bytes.count(b"\n", 0, edit.start) + 1


class Kernel:
    """A function with the decorator `triton.jit`."""

    def __init__(self, source: Source, function: Function) -> None:
        self.source, self.function = source, function
        self.roles = Roles(function)
        self._nodes = [node for statement in function.body for node in ast.walk(statement)]

    def nodes(self, kind: type[N]) -> Iterator[N]:
        """All nodes of a type in the body."""
        return (node for node in self._nodes if isinstance(node, kind))

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of `tl.<name>`, `tl.math.<name>` or `libdevice.<name>`."""
        return (node for node in self.nodes(ast.Call) if library_name(node) in names)

    def operations(self, role: Role, *kinds: type[ast.operator]) -> Iterator[ast.BinOp]:
        """Binary operations of these kinds whose result has the role."""
        nodes = (node for node in self.nodes(ast.BinOp) if isinstance(node.op, kinds))
        return (node for node in nodes if self.roles.of(node) is role)

    def stored(self, *names: str) -> Iterator[ast.expr]:
        """Values that calls of `tl.<name>` write."""
        return (call.args[1] for call in self.calls(*names) if len(call.args) > 1)

    def assigned(self, role: Role) -> Iterator[tuple[str, ast.expr]]:
        """Assignments to one name whose value has the role, as pairs of name and value."""
        for node in self.nodes(ast.Assign):
            target = node.targets[0]
            if len(node.targets) == 1 and isinstance(target, ast.Name) and self.roles.of(node.value) is role:
                yield target.id, node.value


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The value of a call's argument by position or keyword; None if absent."""
    node = argument_node(call, position, name)
    return node.value if isinstance(node, ast.keyword) else node


def argument_node(call: ast.Call, position: int, name: str) -> ast.expr | ast.keyword | None:
    """The node of a call's argument, which is an `ast.keyword` if it is passed by keyword; None if absent."""
    if position < len(call.args):
        return call.args[position]
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def literal(node: ast.expr) -> int | None:
    """The value of an integer literal; None for other expressions."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def is_tensor(leaf: object) -> bool:
    """True if a leaf of a workload's argument tree stands for a tensor."""
    return isinstance(leaf, dict) and list(leaf) == ["tensor"]


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return dotted(target).split(".")[-1] == "jit"
