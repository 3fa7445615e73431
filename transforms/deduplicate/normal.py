"""Normal forms of a module's source: two modules are copies when their normal forms are equal.

`exact` forgets formatting, comments, docstrings and annotations; `renamed` forgets, beyond that, the names
that the source itself gives, and how it imports what it uses; `blind` forgets, beyond that, numbers and strings, and so
sizes. All forget `get_inputs` and
`get_init_inputs`, which this project wrote.
"""

from __future__ import annotations

import ast
import re
from typing import TypeVar

from kernelquarry.pipeline.schema.syntax import parse

# As `ast.unparse` writes them; a number after a letter is part of a name.
_LITERAL = re.compile(r"""[bfur]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<![\w.])\d[\w.]*(?:(?<=e)[-+]\d+)?""")
_ALL_BLIND = re.compile(r"(?<![\w\])])(?:\(0,\)|[(\[]0(?:, 0)*[)\]])|(?<![\w\])] )-0")
D = TypeVar("D", ast.Module, ast.ClassDef, ast.FunctionDef)

OUR_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})
FIXED_NAMES = frozenset({"Model", "forward"})  # every module has these, so they tell nothing


def exact(code: str) -> ast.Module:
    """The tree without what does not run. Raises: SyntaxError if `code` does not parse."""
    tree = parse(code)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in OUR_FUNCTIONS)]
    return _Strip().visit(tree)


def renamed(tree: ast.Module) -> ast.Module:
    """The tree of `exact` with names numbered in order of appearance. `tree` is consumed."""
    imports = _Imports()
    tree = imports.visit(tree)
    return _Rename(tree, imports.paths).visit(tree)


def blind(text: str) -> str:
    """The text of `renamed` with every number and string, and every tuple or list of such, as 0."""
    text = _LITERAL.sub("0", text)
    while (shorter := _ALL_BLIND.sub("0", text)) != text:
        text = shorter
    return text


class _Strip(ast.NodeTransformer):
    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node = self._without_docstring(node)
        node.body = [part for part in node.body if not _is_empty_constructor(part)] or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.visit(ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = []  # super(Model, self) is super()
        return node

    def _without_docstring(self, node: D) -> D:
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node


def _is_empty_constructor(node: ast.stmt) -> bool:
    """`__init__(self)` that only calls super's does what none does."""
    short = isinstance(node, ast.FunctionDef) and node.name == "__init__" and len(node.body) == 1
    return short and ast.unparse(node) == "def __init__(self):\n    super().__init__()"


class _Imports(ast.NodeTransformer):
    """Takes imports away, and notes the full path of each name that they bind."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}

    def _leave(self, node: ast.stmt) -> ast.AST:
        return node  # holds no statement

    visit_Assign = visit_AugAssign = visit_Expr = visit_Return = _leave

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.paths[alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        if any(alias.name == "*" for alias in node.names):
            return node
        for alias in node.names:
            self.paths[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return None


class _Rename(ast.NodeTransformer):
    """Numbers the names that the source binds: `v0`, ... for variables, `a0`, ... for attributes of `self`."""

    def __init__(self, tree: ast.Module, imports: dict[str, str]) -> None:
        self._imports = imports
        self._variables = _bound_variables(tree) - FIXED_NAMES
        self._attributes = _bound_attributes(tree) - FIXED_NAMES
        self._numbers: dict[str, dict[str, str]] = {"v": {}, "a": {}}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._variable(node.id) if node.id in self._variables else self._imports.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._variable(node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # a method is reached through `self`, a function by its name
        node.name = self._attribute(node.name) if node.name in self._attributes else self._variable(node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._variable(node.name)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_self(node.value):
            node.attr = self._attribute(node.attr)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        # a keyword of our own function is a name of ours; `bias=` of nn.Linear is not
        if self._is_own(node.func):
            for keyword in node.keywords:
                keyword.arg = keyword.arg and self._variable(keyword.arg)
        return self.generic_visit(node)

    def _is_own(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(name):
                return name in self._variables
            case ast.Attribute(value=ast.Call(func=ast.Name("super"))):
                return True
            case ast.Attribute(value=owner):
                return _is_self(owner)
        return False

    def _variable(self, name: str) -> str:
        return self._number("v", name) if name in self._variables else name

    def _attribute(self, name: str) -> str:
        return self._number("a", name) if name in self._attributes else name

    def _number(self, kind: str, name: str) -> str:
        numbers = self._numbers[kind]
        return numbers.setdefault(name, f"{kind}{len(numbers)}")


def _bound_variables(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()) | ast.arg(name) | ast.ClassDef(name) | ast.FunctionDef(name):
                names.add(name)
    return {name for name in names if not _is_dunder(name)}


def _bound_attributes(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value, name, ast.Store()) if _is_self(value):
                names.add(name)
            case ast.ClassDef(body=body):
                names |= {part.name for part in body if isinstance(part, ast.FunctionDef)}
    return {name for name in names if not _is_dunder(name)}


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
