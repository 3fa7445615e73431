"""The parts of a candidate's file that stand in the same words in its module's file.

A module decides what is right, so its own text need not be in the language: a copy of its constructor may read
what it reads. What a call of `forward` runs of it is evaluated all the same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .definitions import Context, Definitions
from .idle import is_text

_MODULE_ENTRY_POINT = "Model"
# Names that a copy must not have: with them it may depend on the environment, or set attributes by name.
_REFUSED = frozenset(
    "__file__ __import__ builtins compile ctypes datetime delattr environ eval exec gc globals importlib input inspect "
    "locals open os platform random setattr socket subprocess sys threading time vars".split()
)


def copied(file: Definitions, module: str) -> frozenset[ast.AST]:
    """Parts of a candidate's file that the module's file has in the same place.

    These are statements of the file and of classes, arguments of functions, and single statements of functions that run
    in constructors alone. Annotations, comments and docstrings may differ; a class is the same if its bases and
    decorators are.

    Args:
        module: text of the module's file; a text that does not parse has nothing.
    """
    try:
        theirs = {key for _, key, _ in _parts(parse(module))}
        ours = list(_parts(file.source.tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    found = [(node, key in theirs and not _names(node) & _REFUSED) for function, key, node in ours
             if function is None or file.context(function) is Context.CONSTRUCTOR]  # fmt: skip
    return frozenset(node for node, _ in found) - {node for node, is_same in found if not is_same}


def _parts(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | None, tuple[str, str], ast.AST]]:
    """(function around it, (place, text), node) of each part of a file."""
    for node in tree.body:
        name = ""
        if isinstance(node, ast.ClassDef):
            header = copy.copy(node)
            name, header.body = _renamed(node.name), []
            header.name = name
            yield None, ("", _text(header)), node
        for member in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(member, (ast.Import, ast.ImportFrom)):
                for alias in member.names:
                    one = copy.copy(member)
                    one.names = [alias]
                    yield None, (name, _text(one)), member
                continue
            yield None, (name, _text(member)), member
            if isinstance(member, ast.FunctionDef):
                place = f"{name}.{member.name}"
                yield None, (place, _text(member.args)), member.args
                yield from ((member, (place, _text(part)), part) for part in _parts_of(member))


def _parts_of(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The statements of a function, and the conditions and iterables of these."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function:
            yield node
            yield from (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))


def _names(node: ast.AST) -> set[str]:
    """Names, attributes and imports in a part; those of a class are in its members."""
    roots = node.bases if isinstance(node, ast.ClassDef) else [node]
    every = [each for root in roots for each in ast.walk(root)]
    found = {each.id for each in every if isinstance(each, ast.Name)}
    found |= {each.attr for each in every if isinstance(each, ast.Attribute)}
    return found | {part for each in every if isinstance(each, ast.alias) for part in each.name.split(".")}


def _text(node: ast.AST) -> str:
    return ast.dump(_Plain().visit(copy.deepcopy(node)))


def _renamed(name: str) -> str:
    return CANDIDATE_ENTRY_POINT if name == _MODULE_ENTRY_POINT else name


class _Plain(ast.NodeTransformer):
    """Removes what means something to people alone: annotations and docstrings."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        node.body = [each for each in node.body if not is_text(each)]
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value is not None else ast.Pass()

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = _renamed(node.id)
        return node
