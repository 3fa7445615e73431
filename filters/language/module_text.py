"""The parts of a candidate's file that stand in the same words in its module's file.

A module decides what is right, so its own text need not be in the language: a copy of its constructor may read
what it reads. What a call of `forward` runs of it is evaluated all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .definitions import Context, Definitions
from .idle import is_text

_Form = Any  # equal for equal parts
_MODULE_ENTRY_POINT = "Model"
# Names that a copy must not have: with them it may depend on the environment, or set attributes by name.
_REFUSED = frozenset(
    "__file__ __import__ builtins compile ctypes datetime delattr environ eval exec gc globals importlib input inspect "
    "locals open os platform random setattr socket subprocess sys threading time vars".split()
)


def copied(file: Definitions, module: str) -> frozenset[ast.AST]:
    """Parts of a candidate's file that the module's file has in the same place.

    These are statements of the file and of classes, arguments of functions, and single statements of functions that run
    in constructors alone. Annotations, comments and docstrings may differ, and a class that changes a layer's `forward`
    alone may stand for that layer; a class is the same if its bases and decorators are.

    Args:
        module: text of the module's file; a text that does not parse has nothing.
    """
    try:
        forms = _Forms({name: base for name, node in file.classes.items() if (base := _substituted(node))})
        theirs = {key for _, key, _ in _parts(parse(module), forms)}
        ours = list(_parts(file.source.tree, forms))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    found = [(node, key in theirs and not _names(node) & _REFUSED) for function, key, node in ours
             if function is None or file.context(function) is Context.CONSTRUCTOR]  # fmt: skip
    return frozenset(node for node, _ in found) - {node for node, is_same in found if not is_same}


def _parts(tree: ast.Module, forms: _Forms) -> Iterator[tuple[ast.FunctionDef | None, tuple[str, _Form], ast.AST]]:
    """(function around it, (place, form), node) of each part of a file."""
    for node in tree.body:
        name = ""
        if isinstance(node, ast.ClassDef):
            name = _renamed(node.name)
            header = (name, *forms.of_all([*node.bases, *node.keywords, *node.decorator_list]))
            yield None, ("", header), node
        for member in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(member, (ast.Import, ast.ImportFrom)):
                origin = (member.module, member.level) if isinstance(member, ast.ImportFrom) else ()
                for alias in member.names:
                    yield None, (name, (alias.name, alias.asname, *origin)), member
                continue
            yield None, (name, forms.of(member)), member
            if isinstance(member, ast.FunctionDef):
                place = f"{name}.{member.name}"
                yield None, (place, forms.of(member.args)), member.args
                yield from ((member, (place, forms.of(part)), part) for part in _parts_of(member))


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


def _renamed(name: str) -> str:
    return CANDIDATE_ENTRY_POINT if name == _MODULE_ENTRY_POINT else name


def _substituted(node: ast.ClassDef) -> str:
    """The layer of `torch.nn` for which a class stands that changes its `forward` alone; "" for other classes."""
    match node:
        case ast.ClassDef(bases=[base], body=[ast.FunctionDef(name="forward")], keywords=[], decorator_list=[]):
            return _layer(base)
    return ""


def _layer(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="nn") | ast.Attribute(ast.Name(id="torch"), "nn"), attr=name):
            return name
    return ""


class _Forms:
    """Equal numbers for parts that differ in annotations and docstrings alone, which mean something to people.

    A class that stands for a layer, see `_substituted`, is that layer.
    """

    def __init__(self, substituted: Mapping[str, str]) -> None:
        self._substituted = substituted
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[ast.AST, int] = {}

    def of(self, node: ast.AST) -> int:
        if node not in self._known:
            fields = dict(ast.iter_fields(node))
            kind, ignored = type(node).__name__, {"type_comment"}
            match node:
                case ast.FunctionDef():
                    ignored |= {"returns"}
                    fields["body"] = [each for each in node.body if not is_text(each)]
                case ast.arg():
                    ignored |= {"annotation"}
                case ast.AnnAssign(value=None):
                    kind, fields = "Pass", {}
                case ast.AnnAssign():
                    kind, fields = "Assign", {"targets": [node.target], "value": node.value}
                case ast.Name(id=name) if name in self._substituted:
                    kind, fields = "layer", {"name": self._substituted[name]}
                case ast.Name():
                    fields["id"] = _renamed(node.id)
                case ast.Attribute() if layer := _layer(node):
                    kind, fields = "layer", {"name": layer}
            form = (kind, *[(name, self._of(value)) for name, value in fields.items() if name not in ignored])
            self._known[node] = self._numbers.setdefault(form, len(self._numbers))
        return self._known[node]

    def of_all(self, nodes: Iterable[ast.AST]) -> list[int]:
        return [self.of(node) for node in nodes]

    def _of(self, value: Any) -> Any:
        if isinstance(value, ast.AST):
            return self.of(value)
        return tuple(map(self._of, value)) if isinstance(value, list) else (type(value), repr(value))
