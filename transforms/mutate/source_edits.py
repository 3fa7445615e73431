"""A candidate's source, taken apart: which spans are what, and edits of single spans."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import Workload

from .roles import Role, Roles, dotted, library_name

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef

_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """`text` in place of the bytes from `start` to `end` of the source in UTF-8."""

    start: int
    end: int
    text: str


class Source:
    """A candidate's file, and the workload whose sizes a mistake may take for those of all."""

    def __init__(self, code: str, workload: Workload | None = None) -> None:
        """Raises: SyntaxError."""
        self._workload = workload
        self._bytes = code.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.tree = parse(code)
        functions = [node for node in self.tree.body if isinstance(node, Function)]
        self.kernels = [Kernel(self, node) for node in functions if any(map(_is_jit, node.decorator_list))]

    @cached_property
    def form(self) -> str:
        """Equal for two sources that differ in layout only."""
        return ast.dump(self.tree)

    @cached_property
    def forward(self) -> Function | None:
        """The method of the last class that has one: helpers come before `ModelNew`."""
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        methods = [node for owner in classes for node in owner.body if isinstance(node, Function)]
        return next((node for node in reversed(methods) if node.name == "forward"), None)

    @cached_property
    def forward_nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.forward)) if self.forward else []

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the workload's tensors that are arguments of forward themselves, by parameter."""
        if self._workload is None or self.forward is None:
            return {}
        names = [parameter.arg for parameter in self.forward.args.args[1:]]
        given = dict(zip(names, json.loads(self._workload.args), strict=False)) | json.loads(self._workload.kwargs)
        tensors = {name: value["tensor"] for name, value in given.items() if is_tensor(value)}
        return {name: self._workload.tensors[index].shape for name, index in tensors.items()}

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Bytes of an expression or statement; parentheses around an expression are not part of it."""
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg)
        assert node.end_lineno is not None and node.end_col_offset is not None  # it was parsed
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def between(self, start: int, end: int) -> str:
        return self._bytes[start:end].decode()

    def text(self, node: ast.AST) -> str:
        return self.between(*self.span(node))

    def grouped(self, node: ast.AST) -> str:
        """The expression's text, fit to be an operand of anything."""
        return self.text(node) if isinstance(node, _ATOMS) else f"({self.text(node)})"

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(*self.span(node), text)

    def call(self, call: ast.Call, arguments: list[ast.expr]) -> Edit:
        """The call with other positional arguments and the same keywords."""
        parts = [self.text(part) for part in (*arguments, *call.keywords)]
        return self.replace(call, f"{self.text(call.func)}({', '.join(parts)})")

    def without(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        """The call without one of its arguments."""
        start, end = self.span(argument)
        before = self._bytes[:start].rstrip()
        if isinstance(argument, ast.keyword) and before.endswith(b","):
            return Edit(len(before) - 1, end, "")
        parts = [self.text(part) for part in (*call.args, *call.keywords) if part is not argument]
        return self.replace(call, f"{self.text(call.func)}({', '.join(parts)})")

    def operator(self, node: ast.BinOp, old: str, new: str) -> Edit:
        """The operation with another operator; its operands stay as they are."""
        start, end = self.span(node.left)[1], self.span(node.right)[0]
        return Edit(start, end, self.between(start, end).replace(old, new, 1))

    def apply(self, edit: Edit) -> str:
        return (self._bytes[: edit.start] + edit.text.encode() + self._bytes[edit.end :]).decode()

    def line(self, edit: Edit) -> int:
        """Number of the line that the edit starts in, from 1."""
        return self._bytes.count(b"\n", 0, edit.start) + 1


class Kernel:
    """A function under `triton.jit`, launched or called by one that is."""

    def __init__(self, source: Source, function: Function) -> None:
        self.source, self.function = source, function
        self.roles = Roles(function)
        self._nodes = [node for statement in function.body for node in ast.walk(statement)]

    def nodes(self, kind: type[N]) -> Iterator[N]:
        """All nodes of a kind in the body."""
        return (node for node in self._nodes if isinstance(node, kind))

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of `tl.<name>`, `tl.math.<name>` and `libdevice.<name>`."""
        return (node for node in self.nodes(ast.Call) if library_name(node) in names)

    def operations(self, role: Role, *kinds: type[ast.operator]) -> Iterator[ast.BinOp]:
        """Operations whose result has the role."""
        nodes = (node for node in self.nodes(ast.BinOp) if isinstance(node.op, kinds))
        return (node for node in nodes if self.roles.of(node) is role)

    def assigned(self, role: Role) -> Iterator[tuple[str, ast.expr]]:
        """Names and what is assigned to them, where that has the role."""
        for node in self.nodes(ast.Assign):
            target = node.targets[0]
            if len(node.targets) == 1 and isinstance(target, ast.Name) and self.roles.of(node.value) is role:
                yield target.id, node.value


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument by its place or its name."""
    if position < len(call.args):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def given(call: ast.Call, position: int, name: str) -> ast.expr | ast.keyword | None:
    """The same as it stands in the call, with its keyword."""
    if position < len(call.args):
        return call.args[position]
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def literal(node: ast.expr) -> int | None:
    """The value of an integer that is written out."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def is_tensor(leaf: object) -> bool:
    """In a workload's tree of arguments."""
    return isinstance(leaf, dict) and list(leaf) == ["tensor"]


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return dotted(target).split(".")[-1] == "jit"
