"""Evaluate the host code of a candidate: the statements and expressions of `forward` and of what it calls.

The evaluator walks the syntax tree. Numbers, texts and containers are Python's own, tensors are torch's on the device
`meta`, and everything else is a value of `values.py`. No code of the candidate is compiled or executed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kernelquarry.filters.language import tables
from kernelquarry.filters.language.definitions import Kind, define, variables_of
from kernelquarry.filters.language.parsed_source import Source

from . import attributes, launching, names
from .statements import Return, Statements
from .values import (
    Bound,
    Callback,
    Class,
    Context,
    Device,
    Function,
    Kernel,
    Launcher,
    Layer,
    Native,
    Raised,
    Record,
    Scope,
    Symbol,
    Tuner,
    Unsupported,
)

_MAX_DEPTH = 60  # of calls
_KINDS = {Kind.MODULE: "module", Kind.LAYER: "layer", Kind.AUTOGRAD: "autograd", Kind.RECORD: "plain"}


class Evaluator(Statements):
    """Evaluates calls of one candidate. What an autotuner selected in a call holds for the later ones, as in Python."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.definitions = define(source)
        self.source = source
        self.launch: Callable[[Kernel, tuple[int, ...], dict[str, Any], dict[str, Any]], None] = lambda *_: None
        self.trial = 0  # number of the configuration that tuners select
        self._globals: dict[str, Any] = {}
        self._pending: set[str] = set()
        self._paths: dict[ast.AST, str] = {}
        self._class_values: dict[ast.expr, Any] = {}
        self._depth = 0
        self._cached_kinds: dict[Any, list[Any]] = {}  # the types of the arguments of each form of a cached call

    def run(self, entry: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of a call of the module. Raises: Raised, Unsupported."""
        self._steps = self._depth = 0
        return self.call(entry, args, kwargs)

    def forget_selections(self) -> None:
        """Let tuners select again."""
        for kernel in self._globals.values():
            for decorator in kernel.decorators if isinstance(kernel, Kernel) else ():
                if isinstance(decorator, Tuner):
                    decorator.selected.clear()

    # Names

    def global_value(self, name: str) -> Any:
        """The value of a name of the file or of a built-in function. Raises: Unsupported."""
        if name not in self._globals:
            if name in self._pending:
                raise Unsupported(f"{name}, which needs itself")
            self._pending.add(name)
            try:
                self._globals[name] = self.keep(self._define(name))
            finally:
                self._pending.discard(name)
        return self._globals[name]

    def _define(self, name: str) -> Any:
        file = self.definitions
        if name in file.kernels:
            return launching.define(self, file.kernels[name])
        if name in file.functions:
            return self.decorated(file.functions[name], None)
        if name in file.classes:
            return self._class(file.classes[name])
        if name in file.constants:
            return self._constant(name)
        if name in self.source.imported:
            return names.resolve(self.source.imported[name])
        if (found := names.builtin(name)) is not None:
            return found
        if name == "print":
            return Native(name, lambda *args, **kwargs: None)
        raise Unsupported(f"the name {name}")

    def _constant(self, name: str) -> Any:
        for node in self.source.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = [each.elts if isinstance(each, ast.Tuple | ast.List) else [each] for each in targets]
                if any(isinstance(each, ast.Name) and each.id == name for part in parts for each in part):
                    scope = Scope()
                    value = self.expression(node.value, scope)
                    for target in targets:
                        self.assign(target, value, scope)
                    return scope.names[name]
        raise Unsupported(f"the name {name}")

    def decorated(self, node: ast.FunctionDef, scope: Scope | None) -> Any:
        """A function with its decorators, without those that only mark it."""
        made: Any = Function(node, scope, node.name)
        for decorator in reversed(node.decorator_list):
            path = self.path(decorator.func if isinstance(decorator, ast.Call) else decorator)
            name = path or ast.unparse(decorator)
            if name in names.MARKS:
                continue
            if name in tables.CACHES.names:
                made = Native(node.name, functools.partial(self._cached, made))
                continue
            made = self.call(self.expression(decorator, scope or Scope()), [made], {})
        return made

    def _cached(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of a cached function. Raises: Unsupported: its arguments or result are such that the cache may show.

        Python takes equal arguments for the same, such as 1 and True, or 0.0 and -0.0.
        """
        name, kinds = function.name, [*map(_kind_of, (*args, *kwargs.values()))]
        form, before = (function.node, len(args), *kwargs), self.position()
        if self._cached_kinds.setdefault(form, kinds) != kinds or not all(kinds) or any(map(_has_float, kinds)):
            raise Unsupported(f"a cache of {name} for other arguments than integers and texts, each of one type")
        value = self.call(function, args, kwargs)
        if self.position() != before or not _kind_of(value):
            raise Unsupported(f"a cache of {name}, which makes more than numbers and texts")
        return self.keep(value)

    def _class(self, node: ast.ClassDef) -> Class:
        kind = self.definitions.kind(node)
        if kind not in _KINDS:
            raise Unsupported(f"the class {node.name}")
        paths = [self.source.path(base) for base in node.bases]
        bases = [
            self.global_value(base.id) for base in node.bases if isinstance(base, ast.Name) and not self.path(base)
        ]
        made = _KINDS[kind]
        if "typing.NamedTuple" in paths or any(base.kind == "record" for base in bases):
            made = "record"
        elif node.decorator_list or any(base.kind == "dataclass" for base in bases):
            made = "dataclass"
        members: dict[str, ast.expr | ast.FunctionDef] = {}
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                members[each.name] = each
            elif isinstance(each, ast.Assign | ast.AnnAssign):
                members |= {name: value for name, value in variables_of(each) if value is not None}
        return Class(node, made, tuple(bases), members)

    def path(self, node: ast.AST) -> str:
        """The path of an imported name, or of what it holds; "" for other expressions."""
        if node not in self._paths:
            self._paths[node] = self.source.path(node)
        return self._paths[node]

    def base_of(self, path: str) -> str:
        """The class that a layer's class derives from by classes of the file alone; "" where there are several."""
        node = self.definitions.classes.get(path)
        if node is None:
            return path
        bases = [self.path(base) or ast.unparse(base) for base in node.bases if ast.unparse(base) != path]
        return self.base_of(bases[0]) if len(bases) == 1 else ""

    # Calls

    def call(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a value. Raises: Raised, Unsupported."""
        match function:
            case Function():
                return self._call_function(function, args, kwargs)
            case Bound():
                return self.call(function.function, (*function.arguments, *args), {**function.named, **kwargs})
            case Callback():
                return self.call(function.value, args, kwargs)
            case Native():
                given = [self.plain(each) for each in args]
                return self.counted(function.call(*given, **{name: self.plain(each) for name, each in kwargs.items()}))
            case Launcher():
                return launching.launch(self, function, args, kwargs)
            case Layer():
                return self._call_module(function, args, kwargs)
            case Class():
                return self._instantiate(function, args, kwargs)
            case Symbol("functools.partial") if args and isinstance(args[0], Function | Native | Class | Bound):
                return Bound(args[0], tuple(args[1:]), dict(kwargs))
            case Symbol(path) if path in names.MARKS:
                return Native(path, lambda made: made)
        raise Unsupported(f"a call of a {type(function).__name__}")

    def _call_function(self, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unsupported(f"calls nested over {_MAX_DEPTH} times")
        self.called.add(function.node)
        scope = Scope(function.scope)
        self._bind(function, args, kwargs, scope)
        try:
            if isinstance(function.node, ast.Lambda):
                return self.expression(function.node.body, scope)
            self.statements(function.node.body, scope)
        except Return as returned:
            return returned.value
        finally:
            self._depth -= 1
        return None

    def _bind(self, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], scope: Scope) -> None:
        """Bind the parameters of a function. Raises: Raised: the arguments do not fit."""
        taken, around = function.node.args, function.scope or Scope()
        positional = [each.arg for each in (*taken.posonlyargs, *taken.args)]
        bound = dict(zip(positional, args, strict=False))
        extra, rest = tuple(args[len(positional) :]), dict(kwargs)
        for name in [*positional, *(each.arg for each in taken.kwonlyargs)]:
            if name in rest:
                if name in bound:
                    raise Raised(f"TypeError: {function.name}() got multiple values for {name}")
                bound[name] = rest.pop(name)
        if (extra and taken.vararg is None) or (rest and taken.kwarg is None):
            raise Raised(f"TypeError: {function.name}() got too many arguments")
        if taken.vararg is not None:
            bound[taken.vararg.arg] = extra
        if taken.kwarg is not None:
            bound[taken.kwarg.arg] = rest
        starts = zip(reversed(positional), reversed(taken.defaults), strict=False)
        keyword = ((each.arg, value) for each, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if value)
        for name, default in (*starts, *keyword):
            if name not in bound:
                value = self.expression(default, around)
                bound[name] = self.keep(value) if function.scope is None else value  # a list is that of all calls
        if missing := [name for name in (*positional, *(each.arg for each in taken.kwonlyargs)) if name not in bound]:
            raise Raised(f"TypeError: {function.name}() missing arguments: {', '.join(missing)}")
        scope.names.update(bound)

    def _call_module(self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if layer.path in self.definitions.classes:
            return self.call(attributes.attribute(self, layer, "forward"), args, kwargs)
        if layer.path == attributes.SEQUENTIAL:
            (value,) = args
            for each in layer.children():
                value = self._call_module(each, [value], {})
            return value
        return attributes.call_layer(layer, args, kwargs)

    def apply(self, kind: Class, args: Sequence[Any]) -> Any:
        """A call of an autograd function without a backward."""
        forward, context = kind.find("forward"), Context({"needs_input_grad": (False,) * len(args)})
        if not isinstance(forward, ast.FunctionDef):
            raise Raised(f"NotImplementedError: {kind.name} has no forward")
        setup = kind.find("setup_context")
        function = self.decorated(forward, None)
        if not isinstance(setup, ast.FunctionDef):
            return self.call(function, [context, *args], {})
        result = self.call(function, args, {})
        self.call(self.decorated(setup, None), [context, tuple(args), result], {})
        return result

    def _instantiate(self, kind: Class, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Record:
        if kind.kind not in ("record", "dataclass", "plain"):
            raise Unsupported(f"a {kind.name} that is made in a call")
        made = Record(kind, {})
        constructor = kind.find("__init__")
        if kind.kind != "plain" and constructor is None:
            self._fill(made, args, kwargs)
            constructor, args, kwargs = kind.find("__post_init__"), [], {}
        if isinstance(constructor, ast.FunctionDef):
            self._made.append(made)
            self.call(self.decorated(constructor, None), [made, *args], kwargs)
            self._made.pop()
        elif args or kwargs:
            raise Raised(f"TypeError: {kind.name}() takes no arguments")
        return made

    def _fill(self, made: Record, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        fields = made.kind.fields()
        given = dict(zip(fields, args, strict=False))
        if len(args) > len(fields) or kwargs.keys() - set(fields) or given.keys() & kwargs.keys():
            raise Raised(f"TypeError: the arguments of {made.kind.name}")
        given |= kwargs
        for name in fields:
            if name not in given:
                default = made.kind.find(name)
                if not isinstance(default, ast.expr):
                    raise Raised(f"TypeError: {made.kind.name}() needs {name}")
                value = self.expression(default, Scope())
                if isinstance(value, names.Default):
                    factory = value.default_factory
                    value = value.default if factory is None else self.call(self.callable(factory), [], {})
                given[name] = value
            made.values[name] = given[name]

    def class_value(self, kind: Class, node: ast.expr) -> Any:
        """The value of a class variable, which may use those before it."""
        if node not in self._class_values:
            scope = Scope()
            for name, member in kind.members.items():
                if member is node:
                    break
                if isinstance(member, ast.expr):
                    scope.names[name] = self.class_value(kind, member)
            self._class_values[node] = self.keep(self.expression(node, scope))
        return self._class_values[node]

    @staticmethod
    def callable(value: Any) -> Any:
        """A function of Python as a value of the evaluator."""
        return Native(getattr(value, "__name__", ""), value) if callable(value) else value


def _kind_of(value: Any) -> Any:
    """The type of a number or text, or of those in a tuple, list or dict; None for other values."""
    if isinstance(value, dict):
        return _kind_of((*value, *value.values()))
    if isinstance(value, tuple | list):
        kinds = (type(value), *map(_kind_of, value))
        return kinds if all(kinds) else None
    return type(value) if value is None or isinstance(value, int | float | str | Device | torch.dtype) else None


def _has_float(kind: Any) -> bool:
    """True for the type of a float, or of a tuple, list or dict with one, as `_kind_of` gives it."""
    return kind is float or (isinstance(kind, tuple) and any(map(_has_float, kind)))
