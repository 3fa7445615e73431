"""The parts of a candidate that repeat its module, such as the statements of a constructor.

What a constructor computes, a plan takes as data from a snapshot. So a constructor may do what the module's own does,
in the same words. A part that looks names up, such as `getattr`, is no exception to the language: its variables could
be the candidate's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT

from ..lint.parsed_source import Source
from . import tables

# Fields that change nothing of what is computed.
_IGNORED = frozenset(("annotation", "returns", "type_comment", "kind", "ctx", "type_params"))
# Builtins that look nothing up.
_BUILTINS = tables.BUILTINS.names | tables.TYPES.names | tables.EXCEPTIONS.names | {"super", "callable"}
_LIBRARIES = ("torch.nn.", "numbers.", "collections.abc.")


def repeated(candidate: Source, module: ast.Module) -> frozenset[int]:
    """Ids of the nodes of `candidate` that `module` has too, apart from annotations and the entry point's name.

    The nodes are statements, tests and iterables of compound statements, defaults of arguments, and classes, which
    count by their names, bases and decorators.
    """
    own = _Structures()
    known = {own.of_part(node) for node in _parts(module)}
    same = (node for node in _parts(candidate.tree) if own.of_part(node) in known)
    return frozenset(id(node) for node in same if all(_is_plain(each, candidate) for each in _nodes(node)))


def _parts(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.While():
                yield node.test
            case ast.For():
                yield node.iter
            case ast.arguments():
                yield from filter(None, (*node.defaults, *node.kw_defaults))
        if isinstance(node, ast.stmt):
            yield node


def _nodes(part: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a part; of a class, those of its header."""
    if isinstance(part, ast.ClassDef):
        for each in (*part.bases, *part.keywords, *part.decorator_list):
            yield from ast.walk(each)
    else:
        yield from ast.walk(part)


def _is_plain(node: ast.AST, source: Source) -> bool:
    """False for a node that looks up what it names, or reaches beyond PyTorch's layers and what the language lists."""
    match node:
        case ast.Import(names=names):
            return all(_is_known(f"{alias.name}.") for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return all(_is_known(f"{module}.{alias.name}") for alias in names)
        case ast.Attribute(attr=name) if name.startswith("__"):
            return False
        case ast.Name(id=name) if name in vars(builtins) or name.startswith("__"):
            return name in _BUILTINS
        case ast.Name() | ast.Attribute() if path := source.path(node):
            inner = isinstance(source.parents.get(node), ast.Attribute)
            return inner or _is_known(path)
    return not isinstance(node, (ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Try, ast.Await, ast.Yield))


def _is_known(path: str) -> bool:
    return path.startswith(_LIBRARIES) or tables.is_listed(path) or path in tables.CONSTRUCTOR.names


class _Structures:
    """Hashes of nodes by what they compute, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of_part(self, node: ast.AST) -> int:
        if isinstance(node, ast.ClassDef):
            header = node.bases, node.keywords, node.decorator_list
            return hash((_name(node.name), *map(self._of, header)))
        return self._of(node)

    def _of(self, value: object) -> int:
        if isinstance(value, list):
            return hash(tuple(map(self._of, value)))
        if not isinstance(value, ast.AST):
            return hash((type(value), value))
        if id(value) not in self._known:
            self._known[id(value)] = hash((type(value).__name__, *self._fields(value)))
        return self._known[id(value)]

    def _fields(self, node: ast.AST) -> Iterator[tuple[str, int]]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            return  # super(Model, self) is super()
        for name, value in ast.iter_fields(node):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and name == "body" and ast.get_docstring(node):
                value = value[1:]
            if name not in _IGNORED:
                yield name, self._of(_name(value) if name in ("id", "name") and isinstance(value, str) else value)


def _name(name: str) -> str:
    return ENTRY_POINT if name == CANDIDATE_ENTRY_POINT else name
