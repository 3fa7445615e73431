"""Normal forms of a module's source: modules with equal normal forms are copies.

- `exact` ignores formatting, comments, docstrings and annotations.
- `renamed` also ignores the names that the source binds, and the style of its imports.
- `blind` also ignores numbers and strings, and so sizes.

All ignore `get_inputs` and `get_init_inputs`, which this project wrote.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from kernelquarry.pipeline.schema.parse_python import parse

# As `ast.unparse` writes them; a number after a letter is part of a name.
_LITERAL = re.compile(r"""[bfur]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<![\w.])\d[\w.]*(?:(?<=e)[-+]\d+)?""")
_ALL_BLIND = re.compile(r"(?<![\w\])])(?:\(0,\)|[(\[]0(?:, 0)*[)\]])|(?<![\w\])] )-0")
_SUPER_OF = re.compile(r"\bsuper\s*\(\s*[^)\s]")
D = TypeVar("D", ast.Module, ast.ClassDef, ast.FunctionDef)

OUR_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})
FIXED_NAMES = frozenset({"Model", "forward"})  # every module has these names


def exact(code: str) -> ast.Module:
    """The tree without docstrings, annotations and redundant code. Raises: SyntaxError."""
    tree = parse(code)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in OUR_FUNCTIONS)]
    return _Strip(with_super=_SUPER_OF.search(code) is not None).visit(tree)


def renamed(tree: ast.Module) -> ast.Module:
    """The tree of `exact` with names numbered in order of appearance. `tree` is consumed."""
    imports = _Imports()
    tree = imports.visit(tree)
    nodes = _in_order(tree)
    names = _Names(nodes, imports.paths)
    for node in nodes:
        names.rename(node)
    return tree


def blind(text: str) -> str:
    """The text of `renamed` with 0 for every number and string, and for every tuple or list of them."""
    text = _LITERAL.sub("0", text)
    while (shorter := _ALL_BLIND.sub("0", text)) != text:
        text = shorter
    return text


class _Strip(ast.NodeTransformer):
    def __init__(self, with_super: bool) -> None:
        self._with_super = with_super  # True if a call of `super` has arguments

    def _visit_simple(self, node: ast.stmt) -> ast.AST:
        return self.generic_visit(node) if self._with_super else node  # contains nothing else to strip

    visit_Assign = visit_AugAssign = visit_Expr = visit_Return = _visit_simple

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
    """True for an `__init__(self)` that only calls super's."""
    short = isinstance(node, ast.FunctionDef) and node.name == "__init__" and len(node.body) == 1
    return short and ast.unparse(node) == "def __init__(self):\n    super().__init__()"


class _Imports(ast.NodeTransformer):
    """Removes imports, and records the full path of each name that they bind."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}

    def _leave(self, node: ast.stmt) -> ast.AST:
        return node  # contains no statement

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


class _Names:
    """Replaces the names that the source binds by `v0`, ... for variables and `a0`, ... for attributes of `self`."""

    def __init__(self, nodes: Sequence[ast.AST], imports: Mapping[str, str]) -> None:
        self._imports = imports
        self._variables = _bound_variables(nodes) - FIXED_NAMES
        self._attributes = _bound_attributes(nodes) - FIXED_NAMES
        self._numbers: dict[str, dict[str, str]] = {"v": {}, "a": {}}

    def rename(self, node: ast.AST) -> None:
        """Rename in one node. Names are numbered in the order in which `rename` meets them."""
        match node:
            case ast.Name(id=name):
                node.id = self._variable(name) if name in self._variables else self._imports.get(name, name)
            case ast.arg(arg=name):
                node.arg = self._variable(name)
            case ast.Attribute(value=value, attr=name) if _is_self(value):
                node.attr = self._attribute(name)
            case ast.Call(func=function, keywords=keywords) if keywords and self._is_own(function):
                # keywords of functions of the source are its names; `bias=` of nn.Linear is not
                for keyword in keywords:
                    keyword.arg = keyword.arg and self._variable(keyword.arg)
            case ast.FunctionDef(name=name):
                # methods are attributes of `self`, functions are variables
                node.name = self._attribute(name) if name in self._attributes else self._variable(name)
            case ast.ClassDef(name=name):
                node.name = self._variable(name)

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


def _in_order(tree: ast.Module) -> list[ast.AST]:
    """The nodes in pre-order, without those that have no fields."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        below: list[ast.AST] = []
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                below += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                below.append(value)
        waiting += reversed(below)
    return found


def _bound_variables(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store()) | ast.arg(name) | ast.ClassDef(name) | ast.FunctionDef(name):
                names.add(name)
    return {name for name in names if not _is_dunder(name)}


def _bound_attributes(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
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
