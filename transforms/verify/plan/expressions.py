"""Evaluate the expressions of host code."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kernelquarry.filters.language import tables
from kernelquarry.filters.language.definitions import Definitions
from kernelquarry.filters.language.parsed_source import Source, root

from . import attributes, names
from .launch_plan import Iteration
from .recording import ERRORS, call_torch
from .values import (
    Bound,
    Callback,
    Class,
    Config,
    Function,
    Kernel,
    Launcher,
    Layer,
    Native,
    Raised,
    Record,
    Scope,
    Symbol,
    TooLong,
    Unsupported,
)

_MAX_STEPS, _MAX_STEPS_OF_ALL = 100_000, 600_000  # of one call, of all calls of a candidate
_NUMBERS = 2  # values of an expression that are noted: they tell whether it was constant
_ITEMS_OF_STEP = 8  # items of a new list or text that count as one step
BINARY: Mapping[type[ast.operator], str] = {
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


class Expressions(ABC):
    """The evaluation of expressions; statements, names and calls are those of subclasses.

    `called` are the functions that were called. `evaluated` are statements, and expressions that stand for a branch.
    `sides` are the truth values that each condition had: also, for `min` and `max` of numbers, whether the first was
    chosen, and for a quotient that is rounded down, whether it was not 0. `numbers` are the first values of each
    expression that is a number. All are those of all calls so far.
    """

    source: Source
    definitions: Definitions

    def __init__(self) -> None:
        self.called: set[ast.AST] = set()
        self.evaluated: set[ast.AST] = set()
        self.sides: dict[ast.AST, set[bool]] = {}
        self.numbers: dict[ast.AST, set[int | float]] = {}
        self._kept: dict[int, Any] = {}  # lists, dicts and what holds them that outlive a call, by id
        self._steps = self._steps_of_all = 0
        self.iteration = Iteration(0)  # that is being evaluated; at first the call as a whole
        self.position: Callable[[], int] = lambda: 0  # number of the call's steps so far

    @abstractmethod
    def call(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a value. Raises: Raised, Unsupported."""

    @abstractmethod
    def apply(self, kind: Class, args: Sequence[Any]) -> Any:
        """A call of an autograd function without a backward."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Bind a target of an assignment."""

    @abstractmethod
    def global_value(self, name: str) -> Any:
        """The value of a name of the file or of a built-in function. Raises: Unsupported."""

    @abstractmethod
    def class_value(self, kind: Class, node: ast.expr) -> Any:
        """The value of a class variable, which may use those before it."""

    @abstractmethod
    def decorated(self, node: ast.FunctionDef, scope: Scope | None) -> Any:
        """A function with its decorators, without those that only mark it."""

    @abstractmethod
    def path(self, node: ast.AST) -> str:
        """The path of an imported name, or of what it holds; "" for other expressions."""

    def keep(self, value: Any) -> Any:
        """The value, which outlives a call: its lists and dicts must not change. Raises: Unsupported: an iterator."""
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if id(each) in self._kept:
                continue
            if hasattr(each, "__next__"):
                raise Unsupported("an iterator that outlives a call")
            parts = _parts(each)
            if parts or isinstance(each, list | dict):
                self._kept[id(each)] = each
                waiting += parts
        return value

    def check_change(self, value: Any) -> None:
        """Raises: Unsupported: a list or dict outlives the call, which would leave a change to later calls."""
        if isinstance(value, list | dict) and id(value) in self._kept:
            raise Unsupported(f"a change of a {type(value).__name__} that outlives the call")

    def count(self, steps: int = 1) -> None:
        """Count steps of the evaluation. Raises: TooLong."""
        self._steps += steps
        self._steps_of_all += steps
        if self._steps > _MAX_STEPS or self._steps_of_all > _MAX_STEPS_OF_ALL:
            raise TooLong(f"over {_MAX_STEPS} steps in a call, or {_MAX_STEPS_OF_ALL} in all")

    def counted(self, value: Any) -> Any:
        """A new value, of which a list or text counts by its length. Raises: TooLong."""
        if isinstance(value, str | list | tuple | dict):
            self.count(len(value) // _ITEMS_OF_STEP)
        return value

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
            return type(value)(each if isinstance(each, Layer) else self.plain(each) for each in value)
        return value

    def condition(self, node: ast.expr, scope: Scope) -> bool:
        """The truth value of a condition, whose side is noted."""
        return self.condition_of(node, self.expression(node, scope))

    def condition_of(self, node: ast.expr, value: Any) -> bool:
        """The truth value of a value, noted as a side of its expression."""
        side = self.truth(value)
        self._note(node, side)
        return side

    def _note(self, node: ast.AST, side: bool) -> None:
        self.sides.setdefault(node, set()).add(side)

    def note_quotient(self, node: ast.BinOp | ast.AugAssign, value: Any) -> None:
        """Note whether a quotient that is rounded down is 0."""
        if isinstance(node.op, ast.FloorDiv | ast.RShift) and isinstance(value, int):
            self._note(node, value != 0)

    def _note_choice(self, node: ast.Call, name: str, args: Sequence[Any]) -> None:
        """Note whether `min` or `max` chooses the first number; nothing if another is equal to the chosen one."""
        numbers = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
        if len(numbers) > 1 and all(isinstance(each, int | float) for each in numbers):
            chosen = min(numbers) if name == "min" else max(numbers)
            if [*numbers].count(chosen) == 1:
                self._note(node, numbers[0] == chosen)

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
        """The value of an expression, noted if it is a number. Raises: Raised, Unsupported."""
        value = self._evaluate(node, scope)
        if isinstance(value, int | float):
            known = self.numbers.setdefault(node, set())
            if len(known) < _NUMBERS:
                known.add(value)
        return value

    def _evaluate(self, node: ast.expr, scope: Scope) -> Any:
        self.count()
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Call() if self.definitions.builtin(node.func) == "getattr":
                return self._parameter(*self._items(node.args, scope))
            case ast.Call():
                function = self.expression(node.func, scope)
                args, kwargs = self._arguments(node, scope)
                if isinstance(function, Native) and function.name == "isinstance":
                    return self._is_instance(*args)
                if isinstance(function, Native) and function.name in ("min", "max"):
                    self._note_choice(node, function.name, args)
                return self.call(function, args, kwargs)
            case ast.BinOp():
                left, right = self.expression(node.left, scope), self.expression(node.right, scope)
                name = BINARY[type(node.op)]
                value = names.arithmetic(name, getattr(operator, name), self.plain(left), self.plain(right))
                self.note_quotient(node, value)
                return self.counted(value)
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
            case ast.List() | ast.Set():  # a set stands behind `in`
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
            return names.resolve(path)
        owner = self.expression(node.value, scope)
        if isinstance(owner, Symbol):
            return names.resolve(f"{owner.path}.{node.attr}")
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
                found += names.drained(self.iterate(self.expression(node.value, scope)))
                self.count(len(found) // _ITEMS_OF_STEP)
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
            return not self.condition_of(node.operand, value)
        name = _UNARY[type(node.op)]
        if isinstance(value, Tensor):
            return call_torch(f"operator.{name}", getattr(operator, name), (value,), {})
        return names.guarded(name, getattr(operator, name)).call(value)

    def _logical(self, node: ast.BoolOp, scope: Scope) -> Any:
        value: Any = None
        for part in node.values:
            self.evaluated.add(part)
            value = self.expression(part, scope)
            side = self.condition_of(part, value)
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
            self._note(node, value)
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

    def _parameter(self, owner: Any, name: str) -> Any:
        """The parameter of a layer that has this name."""
        if not isinstance(owner, Layer) or not isinstance(value := owner.attributes.get(name, owner), Tensor | None):
            raise Unsupported(f"getattr of {name}, which is no parameter")
        return value

    def _is_instance(self, value: Any, kinds: Any) -> bool:
        found = []
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            name = kind.path if isinstance(kind, Symbol) else kind.name if isinstance(kind, Native | Class) else ""
            if isinstance(kind, Class):
                found.append(isinstance(value, Record) and _derives(value.kind, kind))
            elif name in names.TYPES:
                is_tuple = name == "tuple" and isinstance(value, Record) and value.is_tuple
                found.append(is_tuple or isinstance(value, names.TYPES[name]))
            elif name in tables.LAYERS.names:
                found.append(isinstance(value, Layer) and self._is_layer(value.path, _kind(name)))
            else:
                raise Unsupported(f"isinstance of {name or type(kind).__name__}")
        return any(found)

    def _is_layer(self, path: str, kind: type) -> bool:
        """True if the class of a layer is `kind`, or derives from it."""
        if path.startswith("torch.nn."):
            return issubclass(_kind(path), kind)
        if path not in self.definitions.classes:
            raise Unsupported("isinstance of a module of another type")
        bases = self.definitions.classes[path].bases
        return any(self._is_layer(self.path(base) or ast.unparse(base), kind) for base in bases)

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
        return str(self.counted("".join(parts)))


def _kind(path: str) -> type[nn.Module]:
    """The class of `torch.nn` of this path."""
    found: type[nn.Module] = getattr(nn, path.rpartition(".")[2])
    return found


_VIEWS: tuple[type, ...] = tuple(type(getattr({}, name)()) for name in ("keys", "values", "items"))


def _parts(value: Any) -> list[Any]:
    """The values that a value holds."""
    match value:
        case list() | tuple():
            return [*value]
        case dict():
            return [*value.keys(), *value.values()]
        case Record():
            return [value.values]
        case Layer():
            return [value.attributes]
        case Config():
            return [value.kwargs]
        case Bound():
            return [value.function, value.arguments, value.named]
    return []


def _needs_change(value: Any) -> bool:
    return isinstance(value, Function | Bound | Launcher | Native | Record | Layer | tuple | list)


def _derives(kind: Class, base: Class) -> bool:
    return kind is base or any(_derives(each, base) for each in kind.bases)
