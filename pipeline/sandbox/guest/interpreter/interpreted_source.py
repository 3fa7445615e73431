"""A kernel's Python function as it is interpreted.

Python decides `and`, `or`, `not`, `min` and `max` by truth values, where Triton takes blocks. Loops count by numbers of
any size, where integers of a GPU overflow. Triton drops assertions.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from .tape import UNSET, count_tensor, recorder

_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
_rewritten: dict[tuple[str, int, str], tuple[CodeType, object]] = {}  # by file, line and name


def rewrite(self: interpreter.FunctionRewriter) -> Callable[..., Any]:
    """The function as it is interpreted. Equal functions of equal files have the same `identity`."""
    kernel = self.fn
    code, names = kernel.__code__, kernel.__globals__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    key = text, code.co_firstlineno, kernel.__name__
    if key not in _rewritten:
        definition = definitions(text).get(key[1:])
        if definition is None:  # of no file
            return kernel
        definition = copy.deepcopy(definition)
        definition.decorator_list, definition.args.defaults = [], []
        definition.args.kw_defaults = [None for _ in definition.args.kwonlyargs]
        tree = ast.fix_missing_locations(ast.Module([_Rewriter().visit(definition)], []))
        parts = compile(tree, code.co_filename, "exec").co_consts
        _rewritten[key] = next(part for part in parts if isinstance(part, CodeType)), object()
    names.update(_FUNCTIONS)
    names["interpreter_semantic"] = interpreter.interpreter_semantic
    code, identity = _rewritten[key]
    if kernel.__closure__:
        names = names | inspect.getclosurevars(kernel).nonlocals
    if "<locals>" in kernel.__qualname__:  # it may differ from an equal one in its defaults and in what it closes over
        identity = object()
    made = FunctionType(code, names, kernel.__name__, kernel.__defaults__)
    made.__kwdefaults__ = kernel.__kwdefaults__
    made.identity = identity  # type: ignore[attr-defined]
    return made


@functools.cache
def definitions(text: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """The functions of a file by their first line, which may be that of a decorator, and their name."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return {(min([each.lineno, *(part.lineno for part in each.decorator_list)]), each.name): each for each in functions}


class _Rewriter(interpreter.ASTTransformer):
    """Triton's own rewriting, by which assigned numbers become tensors, and that of operators, loops and assertions."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Pass()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return ast.Call(_load("<extreme>"), [node.func, *node.args], node.keywords)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._loads = Counter(_loads(node))
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        loads = Counter(_loads(node))
        after = {name for name, times in self._loads.items() if times > loads[name]}
        carried, others = _variables(node, after)
        has_function = isinstance(node.target, ast.Name) and not (node.orelse or any(map(_leaves, ast.walk(node))))
        self.generic_visit(node)
        call = node.iter
        if not isinstance(call, ast.Call) or getattr(call.func, "attr", getattr(call.func, "id", "")) != "range":
            return node
        if has_function:
            return _loop_of_function(node, call, carried, others)
        node.iter = ast.Call(_load("<counted>"), [call], [])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        return super().visit_Assign(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        parts = [ast.Lambda(_NO_ARGUMENTS, value) for value in node.values]
        return _call("and" if isinstance(node.op, ast.And) else "or", parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("not", [ast.Lambda(_NO_ARGUMENTS, node.operand)]) if isinstance(node.op, ast.Not) else node


def _call(operator: str, parts: list[ast.Lambda]) -> ast.Call:
    return ast.Call(_load("<logical>"), [ast.Constant(operator), *parts], [])


def _loop_of_function(node: ast.For, call: ast.Call, carried: Sequence[str], others: Sequence[str]) -> list[ast.stmt]:
    """The loop with its body as a function, which can have a tape; see `Recorder.loop`."""
    result = ast.Return(_tuple([_tuple(map(_load, carried)), _tuple(map(_load, others))]))
    start = ast.Assign([node.target], _load("<number>"))
    names = [ast.arg("<number>"), *(ast.arg(name) for name in carried)]
    arguments = ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[])
    body = ast.FunctionDef("<body>", arguments, [start, *node.body, result], [])
    values = [_tuple(ast.Lambda(_NO_ARGUMENTS, _load(name)) for name in names) for names in (carried, others)]
    bounds = ast.Call(_load("<range>"), call.args, call.keywords)
    called = ast.Call(_load("<loop>"), [_load("<body>"), bounds, *values], [])
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in (*carried, *others)]
    return [body, ast.Assign([ast.Tuple(targets, ast.Store())], called) if targets else ast.Expr(called)]


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _tuple(parts: Iterable[ast.expr]) -> ast.Tuple:
    return ast.Tuple([*parts], ast.Load())


def _loads(node: ast.AST) -> Iterator[str]:
    """Names that are read, each as often as it is."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            yield each.id
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            yield each.target.id


def _stores(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _leaves(node: ast.AST) -> bool:
    """True for statements that a loop's body as a function cannot have."""
    return isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Global | ast.Nonlocal)


def _variables(loop: ast.For, after: set[str]) -> tuple[list[str], list[str]]:
    """Variables that an iteration may read before it assigns them; and others that are read after the loop."""
    assigned, carried = _stores(loop.target), set[str]()
    for statement in loop.body:
        carried |= {*_loads(statement)} - assigned
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            assigned |= _stores(statement)
    stored = _stores(loop)
    carried = (carried | (after - assigned)) & stored
    return sorted(carried), sorted((stored & after) - carried)


def _range(first: Any, stop: Any = None, step: Any = 1, **_: Any) -> tuple[Any, Any, Any]:
    """Bounds of a loop, from the arguments of `range` or `tl.range`."""
    return (0, first, step) if stop is None else (first, stop, step)


def _loop(body: Any, bounds: Sequence[Any], carried: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    """Run a loop whose body is a function. The values of its variables are read by functions."""
    values = [tuple(map(_value, each)) for each in (carried, others)]
    return recorder.loop(body, bounds, *values)


def _value(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except NameError:
        return UNSET


def _counted(numbers: Iterable[int]) -> Iterator[Any]:
    for number in numbers:
        yield count_tensor(number)


def _extreme(function: Any, *values: Any, **options: Any) -> Any:
    if function not in (min, max) or not any(isinstance(value, tl.tensor) for value in values):
        return function(*values, **options)
    return functools.reduce(tl.minimum if function is min else tl.maximum, values)


def _logical(operator: str, *parts: Any) -> Any:
    value = parts[0]()
    if operator == "not":
        return interpreter.interpreter_semantic.not_(value) if isinstance(value, tl.tensor) else not value
    for part in parts[1:]:
        if not isinstance(value, tl.tensor) and bool(value) == (operator == "or"):
            return value  # Python's short circuit
        other = part()
        if isinstance(value, tl.tensor) or isinstance(other, tl.tensor):
            semantic = interpreter.interpreter_semantic
            left, right = semantic.to_tensor(value), semantic.to_tensor(other)
            value = semantic.logical_and(left, right) if operator == "and" else semantic.logical_or(left, right)
        else:
            value = other
    return value


# By names that no source can have.
_FUNCTIONS = {
    "<counted>": _counted,
    "<extreme>": _extreme,
    "<logical>": _logical,
    "<loop>": _loop,
    "<range>": _range,
}
