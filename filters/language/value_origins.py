"""Values of expressions: lists that a function makes, numbers, or lists that may outlive the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from . import tables
from .definitions import Definitions, Function
from .scopes import COMPREHENSIONS, arguments, is_stored

_TO_NUMBERS = frozenset("abs bool float int len round".split())  # built-in functions
_TO_NEW = _TO_NUMBERS | frozenset("dict list range sorted str tuple".split())
_COUNTS = frozenset("bit_length dim element_size nelement numel size stride".split())  # methods of tensors and numbers
_TO_TENSORS = ("math.", "operator.", "torch.", "triton.")  # modules whose functions return no list that they take
_MADE = (ast.List, ast.Dict, ast.Tuple, ast.JoinedStr, ast.Compare, ast.BinOp, ast.UnaryOp, *COMPREHENSIONS)
_NUMBER, _LIST = ast.Constant(0), ast.List([], ast.Load())  # for values without an expression of their own


class Origins:
    """Tests of the values of expressions of one file."""

    def __init__(self, file: Definitions) -> None:
        self._file, self._source = file, file.source
        self._pending: set[tuple[ast.AST, str, str]] = set()  # variables under test: a value may depend on itself

    def is_list(self, node: ast.expr) -> bool:
        """True for an expression that makes a list or a dict."""
        if isinstance(node, ast.BinOp):
            is_slice = isinstance(node.left, ast.Subscript) and isinstance(node.left.slice, ast.Slice)
            return is_slice or self.is_list(node.left)
        made = isinstance(node, ast.Call) and (
            self._file.builtin(node.func) in ("list", "dict") or self._is_copy(node.func)
        )
        return made or isinstance(node, (ast.List, ast.Dict, ast.ListComp, ast.DictComp))

    def _is_copy(self, node: ast.expr) -> bool:
        """True for the method `copy`, which only lists and dicts have."""
        is_method = isinstance(node, ast.Attribute) and node.attr == "copy" and not self._file.path(node)
        return is_method and "copy" not in self._file.attributes

    def is_new(self, node: ast.expr | None) -> bool:
        """True for a number, a text, a tensor, or a list or dict that is made where the expression stands."""
        match node:
            case None:
                return False
            case ast.IfExp():
                return self.is_new(node.body) and self.is_new(node.orelse)
            case ast.Name():
                return self.every_bound(node, self.is_new)
            case ast.Call():
                is_function = self._file.path(node.func).startswith(_TO_TENSORS)
                return is_function or self._file.builtin(node.func) in _TO_NEW or self._is_of_tensor(node.func)
            case ast.Attribute():
                return self._is_of_tensor(node)
        return isinstance(node, (ast.Constant, *_MADE)) or self.is_number(node) or self._is_sizes(node)

    def is_number(self, node: ast.expr | None) -> bool:
        match node:
            case ast.Constant():
                return isinstance(node.value, (int, float))
            case ast.UnaryOp():
                return self.is_number(node.operand)
            case ast.BinOp():
                return self.is_number(node.left) and self.is_number(node.right)
            case ast.IfExp():
                return self.is_number(node.body) and self.is_number(node.orelse)
            case ast.Name():
                return self.every_bound(node, self.is_number)
            case ast.Subscript():
                return not isinstance(node.slice, ast.Slice) and self._is_sizes(node.value)
            case ast.Attribute():
                return node.attr in ("ndim", "itemsize", "nbytes") and self._is_of_tensor(node)
            case ast.Call():
                return self._returns_number(node)
        return False

    def _returns_number(self, node: ast.Call) -> bool:
        path, name = self._file.path(node.func), self._file.builtin(node.func)
        if name in ("max", "min"):
            return len(node.args) > 1 and all(map(self.is_number, node.args))
        counts = isinstance(node.func, ast.Attribute) and node.func.attr in _COUNTS and self._is_of_tensor(node.func)
        is_function = path.startswith("math.") or path in tables.MATH.names or name in _TO_NUMBERS
        return is_function or (counts and not self._is_sizes(node))

    def _is_sizes(self, node: ast.expr | None) -> bool:
        """True for the shape or the strides of a tensor."""
        if node is None:
            return False
        if isinstance(node, ast.Name):
            return self.every_bound(node, self._is_sizes)
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice) and self._is_sizes(node.value)
        if isinstance(node, ast.Call):
            taken = node.args or node.keywords
            return not taken and self._is_of_tensor(node.func, ("size", "stride"))
        return self._is_of_tensor(node, ("shape",))

    def _is_of_tensor(self, node: ast.expr, names: tuple[str, ...] = ()) -> bool:
        """True for an attribute or a method that only tensors have: no class of the file has one of this name."""
        if not isinstance(node, ast.Attribute) or self._file.path(node) or node.attr in self._file.attributes:
            return False
        return node.attr in names if names else tables.is_tensor_attribute(node.attr) or node.attr in _COUNTS

    def every_bound(self, node: ast.Name, test: Callable[[ast.expr | None], bool]) -> bool:
        """True if every value that the variable may have at `node` passes the test; its function binds them all."""
        scope = next((each for each in self._source.ancestors(node) if isinstance(each, (Function, ast.Lambda))), None)
        if not isinstance(scope, Function) or node.id in arguments(scope):
            return False
        key = (scope, node.id, test.__name__)
        if key in self._pending:
            return True
        self._pending.add(key)
        try:
            names = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == node.id]
            reaching = self._reaching(node, [each for each in names if is_stored(each)])
            values = [value for each in reaching for value in self.bound(each)]
            return bool(values) and all(map(test, values))
        finally:
            self._pending.discard(key)

    def _reaching(self, node: ast.Name, stores: list[ast.Name]) -> list[ast.Name]:
        """The stores before `node` or in a loop around it; all, if it is in a generator, which may run after them."""
        around = [*self._source.ancestors(node)]
        if any(isinstance(each, ast.GeneratorExp) for each in around):
            return stores
        loops = {each for each in around if isinstance(each, (ast.For, ast.While))}
        place = node.lineno, node.col_offset
        return [
            each
            for each in stores
            if (each.lineno, each.col_offset) < place or not loops.isdisjoint(self._source.ancestors(each))
        ]

    def bound(self, target: ast.expr) -> Iterator[ast.expr | None]:
        """The value that a target of an assignment or a loop gets; None if it is not known."""
        parent = self._source.parents[target]
        match parent:
            case ast.Assign() | ast.AnnAssign():
                yield from (parent.value,) if parent.value is not None else ()
            case ast.AugAssign() | ast.comprehension():  # keeps the kind of value; has a scope of its own
                return
            case ast.For():
                counts = isinstance(parent.iter, ast.Call) and self._file.builtin(parent.iter.func) == "range"
                yield _NUMBER if counts or self._is_sizes(parent.iter) else None
            case ast.Starred():
                yield _LIST
            case ast.Tuple() | ast.List():
                yield from (self._part(parent, target, value) for value in self.bound(parent))
            case _:
                yield None

    def _part(self, targets: ast.Tuple | ast.List, target: ast.expr, value: ast.expr | None) -> ast.expr | None:
        if value is not None and self._is_sizes(value):
            return _NUMBER
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        starred = any(isinstance(each, ast.Starred) for each in (*parts, *targets.elts))
        return None if starred or len(parts) != len(targets.elts) else parts[targets.elts.index(target)]
