"""Evaluate the host code of a candidate: the statements and expressions of `forward` and of what it calls.

The evaluator walks the syntax tree. Numbers, texts and containers are Python's own, tensors are torch's on the device
`meta`, and everything else is a value of `values.py`. No code of the candidate is compiled or executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from kernelquarry.filters.language.definitions import Definitions, Kind
from kernelquarry.filters.lint.parsed_source import Source, root

from . import attributes, launching, names
from .layers import call_layer
from .recording import ERRORS, call_torch
from .values import (
    Bound,
    Callback,
    Class,
    Context,
    Descriptor,
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

_MAX_STEPS = 400_000  # of one call
_MAX_DEPTH = 60  # of calls
_KINDS = {Kind.MODULE: "module", Kind.AUTOGRAD: "autograd", Kind.RECORD: "plain"}
_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.MatMult: "matmul",
}  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items, ast.NotIn: lambda item, items: item not in items,
}  # fmt: skip


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Evaluator:
    """Evaluates calls of one candidate. What an autotuner selected in a call holds for the later ones, as in Python.

    `called` are the functions that were called. `evaluated` are statements, and expressions that stand for a branch.
    `sides` are the truth values that each condition had. All are those of all calls so far.
    """

    def __init__(self, source: Source, processors: int = names.PROCESSORS) -> None:
        self.definitions = Definitions(source)
        self.source = source
        self.processors = processors
        self.called: set[ast.AST] = set()
        self.evaluated: set[ast.AST] = set()
        self.sides: dict[ast.AST, set[bool]] = {}
        self.launch: Callable[[Kernel, tuple[int, ...], dict[str, Any], dict[str, Any]], None] = lambda *_: None
        self.trial = 0  # number of the configuration that tuners select
        self._globals: dict[str, Any] = {}
        self._pending: set[str] = set()
        self._paths: dict[ast.AST, str] = {}
        self._class_values: dict[ast.expr, Any] = {}
        self._steps = self._depth = 0
        self._made: list[Record] = []  # records whose constructor runs

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
                self._globals[name] = self._define(name)
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
            return names.resolve(self.source.imported[name], self.processors)
        if (found := names.builtin(name)) is not None:
            return found
        if name == "print":
            return Native(name, lambda *args, **kwargs: None)
        raise Unsupported(f"the name {name}")

    def _constant(self, name: str) -> Any:
        for node in self.source.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if name in {
                    each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each in _flat(targets)
                }:
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
            made = self.call(self.expression(decorator, scope or Scope()), [made], {})
        return made

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
            elif isinstance(each, ast.Assign):
                members |= {target.id: each.value for target in each.targets if isinstance(target, ast.Name)}
            elif isinstance(each, ast.AnnAssign) and each.value is not None and isinstance(each.target, ast.Name):
                members[each.target.id] = each.value
        return Class(node, made, tuple(bases), members)

    def path(self, node: ast.AST) -> str:
        """The path of an imported name, or of what it holds; "" for other expressions."""
        if node not in self._paths:
            self._paths[node] = self.source.path(node)
        return self._paths[node]

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
                return function.call(*given, **{name: self.plain(each) for name, each in kwargs.items()})
            case Launcher():
                return launching.launch(self, function, args, kwargs)
            case Layer():
                return self._call_module(function, args, kwargs)
            case Class():
                return self._instantiate(function, args, kwargs)
            case Symbol(path) if path in names.MARKS:
                return Native(path, lambda made: made)
        raise Unsupported(f"a call of a {type(function).__name__}")

    def plain(self, value: Any) -> Any:
        """A value as Python's functions take it: evaluated functions as callables, layers and named tuples as items."""
        if isinstance(value, Function | Bound | Launcher):
            return Callback(value, self.call)
        if isinstance(value, Native):
            return value.call
        if isinstance(value, Record) and value.is_tuple:
            return tuple(value)
        if isinstance(value, Layer):
            return attributes.items_of(value)
        if isinstance(value, tuple | list) and type(value) in (tuple, list) and any(map(_needs_change, value)):
            return type(value)(map(self.plain, value))
        return value

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
        except _Return as returned:
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
                bound[name] = self.expression(default, around)
        if missing := [name for name in (*positional, *(each.arg for each in taken.kwonlyargs)) if name not in bound]:
            raise Raised(f"TypeError: {function.name}() missing arguments: {', '.join(missing)}")
        scope.names.update(bound)

    def _call_module(self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if layer.path in self.definitions.classes:
            return self.call(attributes.attribute(self, layer, "forward"), args, kwargs)
        if layer.path == "torch.nn.Sequential":
            (value,) = args
            for each in layer.children():
                value = self._call_module(each, [value], {})
            return value
        return call_layer(layer, args, kwargs)

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
            self._class_values[node] = self.expression(node, scope)
        return self._class_values[node]

    @staticmethod
    def callable(value: Any) -> Any:
        """A function of Python as a value of the evaluator."""
        return Native(getattr(value, "__name__", ""), value) if callable(value) else value

    # Statements

    def statements(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        for node in body:
            self._count()
            self.evaluated.add(node)
            self._statement(node, scope)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise Unsupported(f"over {_MAX_STEPS} steps")

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Expr():
                if not isinstance(node.value, ast.Constant):
                    self.expression(node.value, scope)
            case ast.Assign():
                value = self.expression(node.value, scope)
                for target in node.targets:
                    self.assign(target, value, scope)
            case ast.AnnAssign():
                if node.value is not None:
                    self.assign(node.target, self.expression(node.value, scope), scope)
            case ast.AugAssign():
                self._change(node, scope)
            case ast.If():
                self.statements(node.body if self.condition(node.test, scope) else node.orelse, scope)
            case ast.For():
                self._loop(node, self.iterate(self.expression(node.iter, scope)), scope)
            case ast.While():
                self._loop(node, iter(lambda: self.condition(node.test, scope), False), scope)
            case ast.Return():
                raise _Return(None if node.value is None else self.expression(node.value, scope))
            case ast.Assert():
                if not self.condition(node.test, scope):
                    raise Raised(f"AssertionError: line {node.lineno}")
            case ast.Raise():
                raise Raised(f"{ast.unparse(node.exc).partition('(')[0] if node.exc else 'error'}: line {node.lineno}")
            case ast.With():
                for item in node.items:
                    if isinstance(item.context_expr, ast.Call):
                        self._arguments(item.context_expr, scope)
                self.statements(node.body, scope)
            case ast.FunctionDef():
                scope.names[node.name] = self.decorated(node, scope)
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Pass():
                pass
            case _:
                raise Unsupported(f"a statement {type(node).__name__}")

    def _loop(self, node: ast.For | ast.While, values: Iterator[Any], scope: Scope) -> None:
        for value in values:
            self._count()
            if isinstance(node, ast.For):
                self.assign(node.target, value, scope)
            try:
                self.statements(node.body, scope)
            except _Continue:
                continue
            except _Break:
                return
        self.statements(node.orelse, scope)

    def _change(self, node: ast.AugAssign, scope: Scope) -> None:
        """An assignment with an operator."""
        name = _BINARY[type(node.op)]
        in_place = f"i{name.rstrip('_')}"
        function = getattr(operator, in_place)
        match node.target:
            case ast.Name():
                old = self._name(node.target, scope)
                scope.names[node.target.id] = names.arithmetic(
                    in_place, function, old, self.expression(node.value, scope)
                )
            case ast.Subscript():
                owner, index = self.expression(node.target.value, scope), self.expression(node.target.slice, scope)
                value = names.arithmetic(
                    in_place, function, self.item(owner, index), self.expression(node.value, scope)
                )
                self._set_item(owner, index, value)
            case ast.Attribute():
                owner = self.expression(node.target.value, scope)
                old = attributes.attribute(self, owner, node.target.attr)
                self._set_attribute(
                    node.target, owner, names.arithmetic(in_place, function, old, self.expression(node.value, scope))
                )

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name():
                scope.names[target.id] = value
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, [*self.iterate(value)], scope)
            case ast.Subscript():
                owner = self.expression(target.value, scope)
                self._set_item(owner, self.expression(target.slice, scope), value)
            case ast.Attribute():
                self._set_attribute(target, self.expression(target.value, scope), value)
            case _:
                raise Unsupported(f"an assignment to {ast.unparse(target)}")

    def _unpack(self, targets: Sequence[ast.expr], values: list[Any], scope: Scope) -> None:
        star = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        if star is not None and len(values) >= len(targets) - 1:
            after = len(targets) - star - 1
            values = [*values[:star], values[star : len(values) - after], *values[len(values) - after :]]
        if len(values) != len(targets):
            raise Raised(f"ValueError: {len(values)} values for {len(targets)} names")
        for target, value in zip(targets, values, strict=True):
            self.assign(target.value if isinstance(target, ast.Starred) else target, value, scope)

    def _set_item(self, owner: Any, index: Any, value: Any) -> None:
        if isinstance(owner, Tensor):
            call_torch("torch.Tensor.__setitem__", Tensor.__setitem__, (owner, index, value), {})
        elif isinstance(owner, list | dict):
            try:
                owner[index] = value
            except ERRORS as error:
                raise Raised(f"{type(error).__name__}: {error}") from error
        else:
            raise Unsupported(f"an item of a {type(owner).__name__} that is set")

    def _set_attribute(self, target: ast.Attribute, owner: Any, value: Any) -> None:
        if isinstance(owner, Context) or (isinstance(owner, Record) and owner in self._made):
            owner.values[target.attr] = value
        elif isinstance(owner, Descriptor) and target.attr == "block_shape":
            owner.block_shape = value
        else:
            raise Unsupported(f"an assignment to {ast.unparse(target)}")

    # Expressions

    def condition(self, node: ast.expr, scope: Scope) -> bool:
        """The truth value of a condition, whose side is noted."""
        side = self.truth(self.expression(node, scope))
        self.sides.setdefault(node, set()).add(side)
        return side

    @staticmethod
    def truth(value: Any) -> bool:
        """Raises: Unsupported: the truth of a tensor."""
        if isinstance(value, Tensor):
            raise Unsupported("a condition on a tensor's values")
        if isinstance(value, Record):
            return bool(value.values) or not value.is_tuple
        if isinstance(value, Layer):
            return bool(attributes.items_of(value)) if attributes.is_container(value) else True
        return bool(value)

    def iterate(self, value: Any) -> Iterator[Any]:
        """The items of a value. Raises: Raised, Unsupported."""
        if isinstance(value, Tensor):
            return iter(call_torch("torch.Tensor.unbind", Tensor.unbind, (value,), {}))
        if isinstance(value, Layer) and attributes.is_container(value):
            return iter(attributes.items_of(value))
        if isinstance(value, Record) and value.is_tuple:
            return iter(value)
        if (
            isinstance(value, list | tuple | dict | range | str)
            or hasattr(value, "__next__")
            or isinstance(value, _VIEWS)
        ):
            return iter(value)
        if value is None or isinstance(value, int | float):
            raise Raised(f"TypeError: a {type(value).__name__} is not iterable")
        raise Unsupported(f"a loop over a {type(value).__name__}")

    def expression(self, node: ast.expr, scope: Scope) -> Any:
        """The value of an expression. Raises: Raised, Unsupported."""
        self._count()
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Call():
                function = self.expression(node.func, scope)
                args, kwargs = self._arguments(node, scope)
                if isinstance(function, Native) and function.name == "isinstance":
                    return self._is_instance(*args)
                return self.call(function, args, kwargs)
            case ast.BinOp():
                left, right = self.expression(node.left, scope), self.expression(node.right, scope)
                name = _BINARY[type(node.op)]
                return names.arithmetic(name, getattr(operator, name), self.plain(left), self.plain(right))
            case ast.UnaryOp():
                return self._unary(node, scope)
            case ast.BoolOp():
                return self._logical(node, scope)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.IfExp():
                taken = node.body if self.condition(node.test, scope) else node.orelse
                self.evaluated.add(taken)
                return self.expression(taken, scope)
            case ast.Subscript():
                return self.item(self.expression(node.value, scope), self.expression(node.slice, scope))
            case ast.Slice():
                parts = (node.lower, node.upper, node.step)
                return slice(*(None if part is None else self.expression(part, scope) for part in parts))
            case ast.Tuple():
                return tuple(self._items(node.elts, scope))
            case ast.List():
                return self._items(node.elts, scope)
            case ast.Dict():
                return self._dict(node, scope)
            case ast.Lambda():
                return Function(node, scope, "<lambda>")
            case ast.ListComp():
                return [self.expression(node.elt, each) for each in self._comprehend(node.generators, scope)]
            case ast.GeneratorExp():
                return iter([self.expression(node.elt, each) for each in self._comprehend(node.generators, scope)])
            case ast.DictComp():
                inner = self._comprehend(node.generators, scope)
                return {self.expression(node.key, each): self.expression(node.value, each) for each in inner}
            case ast.JoinedStr():
                return self._text(node, scope)
        raise Unsupported(f"an expression {type(node).__name__}")

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        bound = scope.find(node.id)
        return self.global_value(node.id) if bound is None else bound.names[node.id]

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        if (path := self.path(node)) and scope.find(root(node)) is None:
            return names.resolve(path, self.processors)
        owner = self.expression(node.value, scope)
        if isinstance(owner, Symbol):
            return names.resolve(f"{owner.path}.{node.attr}", self.processors)
        return attributes.attribute(self, owner, node.attr)

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
        kwargs: dict[str, Any] = {}
        args = self._items(node.args, scope)
        for keyword in node.keywords:
            value = self.expression(keyword.value, scope)
            given = {keyword.arg: value} if keyword.arg else value
            if not isinstance(given, dict) or kwargs.keys() & given.keys():
                raise Raised(f"TypeError: the arguments of {ast.unparse(node.func)}")
            kwargs |= given
        return args, kwargs

    def _items(self, nodes: Iterable[ast.expr], scope: Scope) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.iterate(self.expression(node.value, scope))
            else:
                found.append(self.expression(node, scope))
        return found

    def _dict(self, node: ast.Dict, scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            made = self.expression(value, scope)
            if key is not None:
                found[self.expression(key, scope)] = made
            elif isinstance(made, dict):
                found |= made
            else:
                raise Raised("TypeError: unpacks what is no dict")
        return found

    def _comprehend(self, generators: Sequence[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        """The scopes in which the element of a comprehension is evaluated."""
        if not generators:
            yield scope
            return
        first, *rest = generators
        inner = Scope(scope)
        for value in self.iterate(self.expression(first.iter, scope)):
            self.assign(first.target, value, inner)
            if all(self.condition(test, inner) for test in first.ifs):
                yield from self._comprehend(rest, inner)

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.expression(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        name = _UNARY[type(node.op)]
        if isinstance(value, Tensor):
            return call_torch(f"operator.{name}", getattr(operator, name), (value,), {})
        return names.guarded(name, getattr(operator, name)).call(value)

    def _logical(self, node: ast.BoolOp, scope: Scope) -> Any:
        value: Any = None
        for part in node.values:
            self.evaluated.add(part)
            value = self.expression(part, scope)
            side = self.truth(value)
            self.sides.setdefault(part, set()).add(side)
            if side == isinstance(node.op, ast.Or):
                break
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.expression(node.left, scope)
        value: Any = True
        for number, (each, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.expression(right_node, scope)
            value = self._compared(each, left, right)
            if number < len(node.ops) - 1 and not self.truth(value):
                break
            left = right
        if isinstance(value, bool):
            self.sides.setdefault(node, set()).add(value)
        return value

    def _compared(self, kind: ast.cmpop, left: Any, right: Any) -> Any:
        function = _COMPARE[type(kind)]
        if isinstance(kind, ast.Is | ast.IsNot):
            return function(left, right)
        left, right = self.plain(left), self.plain(right)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            if isinstance(kind, ast.In | ast.NotIn):
                raise Unsupported("a search for a tensor")
            return call_torch(f"operator.{type(kind).__name__}", function, (left, right), {})
        try:
            return function(left, right)
        except ERRORS as error:
            raise Raised(f"{type(error).__name__}: {error}") from error

    def _is_instance(self, value: Any, kinds: Any) -> bool:
        found = []
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            name = kind.path if isinstance(kind, Symbol) else kind.name if isinstance(kind, Native | Class) else ""
            if isinstance(kind, Class):
                found.append(isinstance(value, Record) and _derives(value.kind, kind))
            elif name in names.TYPES:
                is_tuple = name == "tuple" and isinstance(value, Record) and value.is_tuple
                found.append(is_tuple or isinstance(value, names.TYPES[name]))
            else:
                raise Unsupported(f"isinstance of {name or type(kind).__name__}")
        return any(found)

    def item(self, owner: Any, index: Any) -> Any:
        """An item of a value. Raises: Raised, Unsupported."""
        if isinstance(owner, Kernel):
            return Launcher(owner, index)
        if isinstance(owner, Tensor):
            return call_torch("torch.Tensor.__getitem__", Tensor.__getitem__, (owner, index), {})
        if isinstance(owner, Layer) and attributes.is_container(owner):
            return attributes.child(owner, index)
        if isinstance(owner, Record) and owner.is_tuple:
            owner = tuple(owner)
        if isinstance(owner, Symbol) or not isinstance(owner, list | tuple | dict | range | str):
            raise Unsupported(f"an item of a {type(owner).__name__}")
        try:
            return owner[index]
        except ERRORS as error:
            raise Raised(f"{type(error).__name__}: {error}") from error

    def _text(self, node: ast.JoinedStr, scope: Scope) -> str:
        parts = []
        for each in node.values:
            if isinstance(each, ast.Constant):
                parts.append(str(each.value))
            elif isinstance(each, ast.FormattedValue) and each.format_spec is None and each.conversion == -1:
                value = self.expression(each.value, scope)
                if not isinstance(value, int | float | str | torch.dtype):
                    raise Unsupported(f"the text of a {type(value).__name__}")
                parts.append(str(value))
            else:
                raise Unsupported("a format of text")
        return "".join(parts)


_VIEWS: tuple[type, ...] = tuple(type(getattr({}, name)()) for name in ("keys", "values", "items"))


def _needs_change(value: Any) -> bool:
    return isinstance(value, Function | Bound | Launcher | Native | Record | Layer | tuple | list)


def _derives(kind: Class, base: Class) -> bool:
    return kind is base or any(_derives(each, base) for each in kind.bases)


def _flat(targets: Iterable[ast.expr]) -> list[ast.expr]:
    return [
        each for target in targets for each in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
    ]
