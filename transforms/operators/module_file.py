"""The file of a module: its definitions, and what its imports stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from kernelquarry.pipeline.schema import parse_python

_GIVEN = {"torch": "torch", "nn": "torch.nn", "triton": "triton", "tl": "triton.language"}  # what each answer imports


class ModuleFile:
    """`definitions` are those of the file by name, `texts` its strings, `methods` those of its classes, `reached` those
    that calls of a class may reach.
    """

    def __init__(self, code: str) -> None:
        body = parse_python.parse(code).body
        self._imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        self._paths = {name: path for node in self._imports for name, path, _ in _bound(node)}
        self.definitions = {name: node for node in body for name in defined(node)}
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        self.reached = _reached(classes)
        self.methods = {each.name for node in classes for each in node.body if isinstance(each, ast.FunctionDef)}
        constants = (each for node in body for each in ast.walk(node) if isinstance(each, ast.Constant))
        self.texts = {each.value for each in constants if isinstance(each.value, str)}

    def path(self, node: ast.expr) -> str:
        """The path that an imported name or an attribute of one stands for, such as `torch.nn.ReLU`; "" for others."""
        match node:
            case ast.Name(id=name) if name not in self.definitions:
                return self._paths.get(name, "")
            case ast.Attribute(value=value, attr=name):
                return f"{path}.{name}" if (path := self.path(value)) else ""
        return ""

    def imports_for(self, nodes: Sequence[ast.stmt]) -> list[str]:
        """The imports that definitions need, besides those of each answer."""
        used, found = {name for node in nodes for name in names(node)}, []
        for node in self._imports:
            if kept := [alias for name, path, alias in _bound(node) if name in used and _GIVEN.get(name) != path]:
                node.names = kept
                found.append(ast.unparse(node))
        return found


def _reached(classes: Sequence[ast.ClassDef]) -> dict[ast.ClassDef, set[str]]:
    """The methods that calls may reach in a class, its bases and what derives from it, among other attributes."""
    families = {node: [node] for node in classes}
    for node in classes:
        for base in node.bases:
            for other in classes:
                if isinstance(base, ast.Name) and other.name == base.id and families[other] is not families[node]:
                    families[other] += families[node]
                    families |= dict.fromkeys(families[other], families[other])
    return {node: _reached_in(family) for node, family in families.items()}


def _reached_in(family: Sequence[ast.ClassDef]) -> set[str]:
    methods = [
        (each.name, attributes(each)) for node in family for each in node.body if isinstance(each, ast.FunctionDef)
    ]
    found = {"__init__", "forward"}
    while new := {name for method, used in methods if method in found for name in used} - found:
        found |= new
    return found


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, ast.alias]]:
    """(name, what it stands for, alias) of each name that an import binds."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module}.{alias.name}", alias
        else:
            name = alias.asname or alias.name.partition(".")[0]
            yield name, alias.name if alias.asname else name, alias


def defined(node: ast.stmt) -> list[str]:
    """Names that a statement of the file defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [name for target in targets for name in names(target)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def needed_early(node: ast.AST) -> list[str]:
    """Names that a definition needs when the file is loaded."""
    match node:
        case ast.FunctionDef():
            return [name for each in (node.args, *node.decorator_list) for name in names(each)]
        case ast.ClassDef():
            return [name for each in (*node.bases, *node.body) for name in needed_early(each)]
    return names(node)


def names(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def attributes(node: ast.AST) -> list[str]:
    return [each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)]
