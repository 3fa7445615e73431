"""The definitions of a candidate's file, and the functions that run in a call of forward or only in a constructor."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from functools import lru_cache

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from . import tables
from .parsed_source import Source, root
from .scopes import is_local

Function = ast.FunctionDef
Definition = ast.FunctionDef | ast.ClassDef


class Context(Enum):
    """When a piece of host code runs."""

    CALL = auto()  # in calls of forward, or when the file is imported
    CONSTRUCTOR = auto()  # in constructors alone


class Kind(Enum):
    """The kind of a class of the file."""

    MODULE = auto()
    AUTOGRAD = auto()
    RECORD = auto()  # a named tuple, a dataclass, or a class without bases
    LAYER = auto()  # derived from a layer of `torch.nn`, as in lowered rows; candidates derive from listed ones
    OTHER = auto()  # outside of the language


class Definitions:
    """Functions, kernels and classes at the top of the file, and the names that it sets."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kernels = source.kernels
        body = source.tree.body
        self.functions = {
            node.name: node for node in body if isinstance(node, Function) and node.name not in source.kernels
        }
        self.classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        self.constants = dict(_constants(body))
        members = [(node, member) for node in self.classes.values() for member in node.body]
        owned = [(node, member) for node, member in members if isinstance(member, Function)]
        self._owners = {id(member): node for node, member in owned}
        self.methods: dict[str, list[Function]] = {}
        for _, member in owned:
            self.methods.setdefault(member.name, []).append(member)
        self.names = self.functions.keys() | self.classes.keys() | self.constants.keys() | self.kernels.keys()
        self.attributes = self._attributes()
        self.called = self._reach([*self._call_roots(), *self._values()])
        self.reached = self.called | self._reach([*self.classes.values()])

    def context(self, node: ast.AST) -> Context:
        return Context.CALL if id(node) in self.called else Context.CONSTRUCTOR

    def kind(self, node: ast.ClassDef) -> Kind:
        paths = [self.source.path(base) for base in node.bases]
        decorators = [self.source.path(getattr(each, "func", each)) for each in node.decorator_list]
        if len(paths) > 1 or node.keywords or set(decorators) - {"dataclasses.dataclass"}:
            return Kind.OTHER
        if not paths:
            return Kind.RECORD
        if not paths[0]:
            parent = self.classes.get(root(node.bases[0]))
            earlier = parent is not None and parent.lineno < node.lineno
            return Kind.OTHER if parent is None or not earlier or decorators else self.kind(parent)
        kinds = {
            "torch.nn.Module": Kind.MODULE,
            "typing.NamedTuple": Kind.RECORD,
        }
        kinds |= dict.fromkeys(("torch.autograd.Function", "torch.autograd.function.Function"), Kind.AUTOGRAD)
        is_layer = paths[0].startswith("torch.nn.") and not decorators
        return kinds.get(paths[0], Kind.LAYER if is_layer else Kind.OTHER)

    def path(self, node: ast.AST) -> str:
        """The path of an imported name, or of what it holds; "" for other expressions and for variables."""
        return "" if is_local(root(node), node, self.source) else self.source.path(node)

    def builtin(self, node: ast.AST) -> str:
        """The name of a built-in function; "" for other expressions, and for names that the file binds."""
        name = node.id if isinstance(node, ast.Name) else ""
        own = name in self.names or name in self.source.imported or is_local(name, node, self.source)
        return "" if own else name

    def writes_text(self, node: ast.AST) -> bool:
        """True for a call of `print`, or of a function or a logger that writes a message, which calls no method."""
        if not isinstance(node, ast.Call) or not node.args or not _is_text(node.args[0]):
            return False
        if not all(isinstance(each.value, ast.Constant) for each in node.keywords):
            return False
        if not all(
            self._is_shown(inner) for each in node.args for inner in ast.walk(each) if isinstance(inner, ast.expr)
        ):
            return False
        match function := node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name in self.constants:
                made = self.constants[name]
                is_logger = isinstance(made, ast.Call) and self.path(made.func) == tables.LOGGER
                return is_logger and method in tables.LOG_METHODS and not is_local(name, node, self.source)
        return self.builtin(function) == "print" or self.path(function) in tables.WRITERS

    def _is_shown(self, node: ast.expr) -> bool:
        """True for an expression that a message may have: values, and calls that read them."""
        match node:
            case ast.Call(func=ast.Attribute(value=text, attr="format")):
                return is_plain_format(text)
            case ast.Call(func=ast.Attribute(attr=method)):
                return method in ("dim", "numel", "size", "stride") and method not in self.methods
            case ast.Call():
                return self.builtin(node.func) in ("float", "int", "len", "list", "str", "tuple")
            case ast.FormattedValue():
                spec = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else ()
                return all(isinstance(each, ast.Constant) for each in spec)
        return not isinstance(node, (ast.IfExp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp))

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method `node` is."""
        return self._owners.get(id(node))

    def self_name(self, function: Function) -> str:
        """The first argument of a method, or the context of an autograd function; "" for other functions."""
        owner, taken = self.owner(function), function.args
        is_static = "staticmethod" in map(self.builtin, function.decorator_list)
        if owner is None or (is_static and self.kind(owner) is not Kind.AUTOGRAD):
            return ""
        return next((each.arg for each in (*taken.posonlyargs, *taken.args)), "")

    def is_constant(self, node: ast.AST, within: frozenset[str] = frozenset()) -> bool:
        """True for a number, a text, a type, or what is computed from constants alone.

        Args: within: constants whose value it is part of, and so may not be.
        """
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            value = None if node.id in within else self.constants.get(node.id)
            return value is not None and self.is_constant(value, within | {node.id})
        if isinstance(node, ast.Attribute):
            return self.source.path(node).startswith(("triton.language.", "math.", "torch."))
        if isinstance(node, ast.Call):
            path = self.source.path(node.func)
            number = path.startswith("math.") or self.builtin(node.func) in ("float", "int")
            made = path == "triton.language.constexpr" or number
            return made and not node.keywords and all(self.is_constant(each, within) for each in node.args)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple)):
            return all(
                self.is_constant(each, within) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
            )
        return False

    def _attributes(self) -> frozenset[str]:
        """Names of the methods, class variables and attributes of the file's classes."""
        found = set[str]()
        for node in self.classes.values():
            for member in node.body:
                if isinstance(member, Function):
                    found.add(member.name)
                elif isinstance(member, (ast.Assign, ast.AnnAssign)):
                    found |= {name for name, _ in variables_of(member)}
            owners = {"self", "ctx", *map(self.self_name, (each for each in node.body if isinstance(each, Function)))}
            for inner in ast.walk(node):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.ctx, ast.Store)
                    and root(inner.value) in owners
                ):
                    found.add(inner.attr)
                elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.args:
                    name = inner.args[0]
                    by_name = inner.func.attr in ("register_buffer", "register_parameter", "add_module")
                    if by_name and isinstance(name, ast.Constant):
                        found.add(str(name.value))
        return frozenset(found)

    def _call_roots(self) -> list[ast.AST]:
        """The code of the file itself, and what PyTorch calls of its classes."""
        roots: list[ast.AST] = [node for node in self.source.tree.body if not isinstance(node, (*_DEFINED, ast.If))]
        decorated: list[Definition] = [*self.functions.values(), *self.kernels.values(), *self.classes.values()]
        roots += [decorator for each in decorated for decorator in each.decorator_list]
        members = [member for node in self.classes.values() for member in node.body]
        roots += [each for each in members if not isinstance(each, Function) or each.name in CALLED]
        if CANDIDATE_ENTRY_POINT not in self.classes:  # a file of functions, for a test that calls them
            roots += self.functions.values()
        return roots

    def _values(self) -> Iterator[ast.AST]:
        """Functions and methods that are values, or called in a lambda or a nested function: any call may run them.

        `Module.apply` calls what it takes at once.
        """
        for node in self.source.nodes:
            named = self.functions.get(node.id) if isinstance(node, ast.Name) else None
            found = self.methods.get(node.attr, []) if isinstance(node, ast.Attribute) else [named] if named else []
            if not found:
                continue
            parent = self.source.parents.get(node)
            function = parent.func if isinstance(parent, ast.Call) else None
            around = [each for each in self.source.ancestors(node) if isinstance(each, (Function, ast.Lambda))]
            applies = isinstance(function, ast.Attribute) and function.attr == "apply" and "apply" not in self.methods
            if len(around) > 1 or (function is not node and not applies):
                yield from (each for each in found if each.name not in ("__init__", *CALLED))

    def _reach(self, roots: list[ast.AST]) -> set[int]:
        """Functions, kernels and classes that the roots reach, by the names of functions and of methods."""
        found, waiting = set[int](), list(roots)
        while waiting:
            node = waiting.pop()
            if isinstance(node, _DEFINED):
                if id(node) in found:
                    continue
                found.add(id(node))
            if isinstance(node, ast.ClassDef):
                waiting += self._of_class(node)
                continue
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    named: tuple[Mapping[str, Definition], ...] = (self.functions, self.kernels, self.classes)
                    waiting += [table[inner.id] for table in named if inner.id in table]
                elif isinstance(inner, ast.Attribute) and inner.attr not in CALLED:
                    waiting += [each for each in self.methods.get(inner.attr, []) if each.name != "__init__"]
        return found

    def _of_class(self, node: ast.ClassDef) -> Iterator[ast.AST]:
        """The code that a use of a class runs: its constructor, its base classes, and forward."""
        yield from (self.classes[name] for name in map(root, node.bases) if name in self.classes)
        started = ("__init__", "__post_init__", *CALLED)
        yield from (member for member in node.body if isinstance(member, Function) and member.name in started)


@lru_cache(maxsize=32)
def define(source: Source) -> Definitions:
    """The definitions of a source, which none changes."""
    return Definitions(source)


CALLED = frozenset("forward backward setup_context extra_repr".split())  # methods that PyTorch calls
_DEFINED = (ast.FunctionDef, ast.ClassDef)


def is_plain_format(node: ast.expr) -> bool:
    """True for a text whose `format` reads neither attributes nor items."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    try:
        fields = [(name or "", spec or "") for _, name, spec, _ in string.Formatter().parse(node.value)]
    except ValueError:
        return False
    return not any({*".["} & {*name} or "{" in spec for name, spec in fields)


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(left=text, op=ast.Add() | ast.Mod()) | ast.Call(func=ast.Attribute(value=text, attr="format")):
            return _is_text(text)
        case ast.Constant(value=value):
            return isinstance(value, str)
    return isinstance(node, ast.JoinedStr)


def _constants(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            yield from ((each.id, node.value) for each in _targets(node) if isinstance(each, ast.Name))


def variables_of(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement of a class binds, each with its value, also where a tuple fills several names."""
    for target in _targets(node):
        match target, node.value:
            case ast.Name(), _:
                yield target.id, node.value
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                pairs = list(zip(names, values, strict=True))
                if not any(isinstance(each, ast.Starred) for pair in pairs for each in pair):
                    yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]
