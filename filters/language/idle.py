"""Statements that do nothing when their file is imported, but that they bind names."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Iterator, Sequence
from importlib import import_module

from . import tables
from .parsed_source import MAIN_TESTS, Source, root

# Modules whose import changes nothing that a candidate uses; the last ones may be missing.
_INSTALLED = frozenset(("numpy", "pytest"))
_HARMLESS = _INSTALLED | frozenset(
    "abc argparse ast builtins collections contextlib copy csv dataclasses datetime enum functools gc glob hashlib "
    "importlib inspect io itertools json logging math multiprocessing numbers operator os os.path pathlib pickle "
    "platform pprint random re shutil signal statistics string struct subprocess sys tempfile textwrap threading time "
    "timeit traceback types typing unittest uuid warnings triton.runtime triton.testing".split()
)
# Functions that compile other sources, of a module that torch does not import itself.
_OF_EXTENSIONS = frozenset(f"torch.utils.cpp_extension.{name}" for name in ("load", "load_inline"))
_OTHER_DECORATORS = frozenset(
    "abc.abstractmethod contextlib.contextmanager functools.cache functools.lru_cache pytest.mark.parametrize "
    "triton.testing.perf_report".split()
)
_STATIC = frozenset(("staticmethod", "classmethod", "property"))
_DECORATORS = (tables.CONTEXTS.names | tables.KERNEL_DECORATORS | _OTHER_DECORATORS) - _STATIC
# Calls that make a value and do nothing else.
_CALLS = frozenset(
    ("logging.getLogger", "typing.TypeVar", "torch.device", "triton.Config", "triton.testing.Benchmark", "enum.auto")
)
# Methods that only instances have, and none of these is made.
_METHODS = frozenset(
    ("__init__", "__post_init__", "__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__", "__repr__")
)
_BUILTINS = frozenset(dir(builtins))


def bound(node: ast.stmt) -> set[str]:
    """Names that a statement of the file defines."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return set()


def is_program(node: ast.stmt) -> bool:
    """True for code that runs only when the file is not imported."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in MAIN_TESTS and not node.orelse


class Statements:
    """The statements of a file, judged by their effect on import."""

    def __init__(self, source: Source) -> None:
        self._source, self._body = source, source.tree.body
        self._once = {name for name, nodes in source.binders.items() if len(nodes) == 1 or self._import_alone(nodes)}

    def _import_alone(self, nodes: Sequence[ast.AST]) -> bool:
        """True if all are imports such as `import torch` and `import torch.nn`, which bind the same module."""
        plain = (isinstance(each, ast.alias) and not each.asname for each in nodes)
        return all(plain) and all(isinstance(self._source.parents[each], ast.Import) for each in nodes)

    def is_idle(self, node: ast.stmt) -> bool:
        """True if nothing happens when the statement is imported, but that it binds names."""
        is_special = any(name.startswith("__") and name.endswith("__") for name in bound(node))
        return not is_special and self._does_nothing(node)

    def _does_nothing(self, node: ast.stmt) -> bool:
        match node:
            case ast.FunctionDef():
                values = (*node.args.defaults, *filter(None, node.args.kw_defaults))
                return (
                    all(map(self._is_decorator, node.decorator_list))
                    and all(self._is_value(each, node) for each in values)
                    and all(map(self._is_annotation, _annotations(node)))
                )
            case ast.ClassDef():
                members = [each for each in node.body if not is_text(each) and not isinstance(each, ast.Pass)]
                return (
                    not node.keywords
                    and all(map(self._is_decorator, node.decorator_list))
                    and all(self._is_value(each, node) for each in node.bases)
                    and all(isinstance(each, _DEFINITIONS) and self._is_member(each) for each in members)
                )
            case ast.Assign():
                return all(_is_target(each, node.value) for each in node.targets) and self._is_value(node.value, node)
            case ast.AnnAssign():
                is_plain = isinstance(node.target, ast.Name) and self._is_annotation(node.annotation)
                return is_plain and (node.value is None or self._is_value(node.value, node))
            case ast.Import():
                return all(_is_harmless(alias.name) for alias in node.names)
            case ast.ImportFrom():
                return not node.level and all(_has(node.module or "", alias.name) for alias in node.names)
        return is_program(node)

    def _is_member(self, node: ast.stmt) -> bool:
        """True if nothing happens for a statement of a class, whose instances nothing makes."""
        if isinstance(node, ast.FunctionDef) and node.name in _METHODS:
            return self._does_nothing(node)
        return self.is_idle(node)

    def _is_value(self, node: ast.expr, where: ast.AST) -> bool:
        """True for an expression that only reads, of names that are bound before the statement `where`."""
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return node.id in _BUILTINS or node.id in self._bound_before(where)
            case ast.Attribute():
                return self._is_of_import(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return all(self._is_value(each, where) for each in node.elts)
            case ast.Dict():
                entries = (*node.keys, *node.values)
                return all(each is not None and self._is_value(each, where) for each in entries)
            case ast.Call():
                listed = self._is_of_import(node.func) and self._source.path(node.func) in _CALLS
                given = (*node.args, *(each.value for each in node.keywords))
                return listed and all(self._is_value(each, where) for each in given)
        return self._is_number(node)

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return isinstance(node.value, int | float)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                return self._is_number(node.operand)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
                return self._is_number(node.left) and self._is_number(node.right)
            case ast.Name() if node.id in self._once:
                found = [each for each in self._body if node.id in bound(each) and each.lineno < node.lineno]
                return any(isinstance(each, ast.Assign) and self._is_number(each.value) for each in found)
        return False

    def _is_annotation(self, node: ast.expr) -> bool:
        """True for an annotation of names that the file does not define, which subscripts and `|` may combine."""
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return self._is_of_import(node) or (node.id in _BUILTINS and node.id not in self._source.binders)
            case ast.Attribute():
                return self._is_of_import(node)
            case ast.Subscript():
                return self._is_annotation(node.value) and self._is_annotation(node.slice)
            case ast.Tuple() | ast.List():
                return all(map(self._is_annotation, node.elts))
            case ast.BinOp(op=ast.BitOr()):
                return self._is_annotation(node.left) and self._is_annotation(node.right)
        return False

    def _is_decorator(self, node: ast.expr) -> bool:
        function = node.func if isinstance(node, ast.Call) else node
        given = (*node.args, *(each.value for each in node.keywords)) if isinstance(node, ast.Call) else ()
        is_own = isinstance(function, ast.Name) and function.id in _STATIC and function.id not in self._source.binders
        listed = is_own or (self._is_of_import(function) and self._source.path(function) in _DECORATORS)
        return listed and all(self._is_value(each, node) for each in given)

    def _is_of_import(self, node: ast.expr) -> bool:
        """True for a name of an import, or an attribute of one that exists, if nothing else binds the name."""
        name = root(node)
        if name not in self._once or name not in self._source.imported:
            return False
        return isinstance(node, ast.Name) or exists(self._source.path(node))

    def _bound_before(self, where: ast.AST) -> set[str]:
        line = getattr(where, "lineno", 0)
        return {name for each in self._body if each.lineno < line for name in bound(each)}


_DEFINITIONS = (ast.FunctionDef, ast.Assign, ast.AnnAssign)


def _annotations(function: ast.FunctionDef) -> Iterator[ast.expr]:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    yield from (each.annotation for each in every if each is not None and each.annotation is not None)
    if function.returns is not None:
        yield function.returns


def _is_target(target: ast.expr, value: ast.expr) -> bool:
    """True for a name, or for names in a tuple that the tuple `value` fills."""
    if not isinstance(target, ast.Tuple):
        return isinstance(target, ast.Name)
    fits = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
    return fits and all(isinstance(each, ast.Name) for each in target.elts)


def _is_harmless(module: str) -> bool:
    return module in _HARMLESS and module not in tables.IMPORTS.names


def _has(module: str, name: str) -> bool:
    """True if importing the name from the module does nothing, and does not raise."""
    path = f"{module}.{name}"
    return path in _OF_EXTENSIONS or (_is_harmless(module) and name != "*" and exists(path))


@functools.cache
def exists(path: str) -> bool:
    """True if an attribute of a module exists, or if the module may be missing here. It imports no submodule."""
    head, *names = path.split(".")
    if head in _INSTALLED:
        return True
    value = import_module(head) if head in _HARMLESS | {"torch", "triton"} else None
    for name in names:
        if isinstance(value, property):  # such as Triton's driver, which needs a GPU
            return True
        if name not in dir(value):
            return False
        value = inspect.getattr_static(value, name)
    return True


def is_text(node: ast.stmt) -> bool:
    """True for a docstring, or another constant that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
