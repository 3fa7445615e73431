"""Passes over a simplified body: what is unused goes, what is used once is said where it is used."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..syntax.ast_tools import copied, walk
from .forms import loaded
from .triton_functions import call
from .value_types import element

_WIDTH = 88  # of an expression that another one may be written into
_KEPT = (
    "tl.load",
    "tl.dot",
    "tl.sum",
    "tl.max",
    "tl.min",
    "tl.reduce",
    "tl.sort",
    "tl.cumsum",
    "tl.associative_scan",
    "nan_max",
    "nan_min",
    "any_true",
    "arg_max",
    "arg_min",
)


def uses(nodes: Sequence[ast.AST]) -> Counter[str]:
    """How often each name is read."""
    return Counter(
        child.id
        for node in nodes
        for child in walk(node)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)
    )


def substitute(node: ast.stmt, replacements: Mapping[str, ast.expr]) -> ast.stmt:
    """`node` with names that are read replaced by expressions."""

    class Substitution(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            if isinstance(name.ctx, ast.Load) and name.id in replacements:
                return copied(replacements[name.id])
            return name

    return Substitution().visit(node) if replacements else node


def without_dead_code(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body without assignments that nothing reads."""
    while True:
        read = uses(body)
        kept = _live(body, read)
        if _count(kept) == _count(body):
            return kept
        body = kept


def _count(body: Sequence[ast.stmt]) -> int:
    return sum(1 + (_count(statement.body) if isinstance(statement, ast.For) else 0) for statement in body)


def _live(body: Sequence[ast.stmt], read: Counter[str]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                # An accumulator that only its own update reads is dead too.
                if read[name] > uses([value])[name]:
                    kept.append(statement)
            case ast.Assign(targets=[ast.Tuple(elts=elements)]):
                if any(isinstance(element, ast.Name) and read[element.id] for element in elements):
                    kept.append(statement)
            case ast.For(target=target, iter=steps, body=inner):
                live = _live(inner, read)
                if live:
                    kept.append(ast.For(target, steps, live, [], lineno=0))
            case _:
                kept.append(statement)
    return kept


def without_round_trips(body: Sequence[ast.stmt], types: Mapping[str, str]) -> list[ast.stmt]:
    """Half-precision values that are loaded as float32 only to be cast back stay what they are: products take them so.

    `types` are those of the pointers, as Triton writes them.
    """
    if not {"*fp16", "*bf16"} & set(types.values()):
        return list(body)
    module = copied(ast.Module(list(body), []))
    seen = uses([module])
    back = Counter(
        (node.func.value.id, ast.unparse(node.args[0]))
        for node in walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        if isinstance(node.func.value, ast.Name)
    )
    for node in walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Attribute(value=inner, attr="to"))):
                if (load := loaded(inner)) is not None and any(
                    back[name, f"tl.{element(types.get(root.id, ''))}"] == seen[name] > 0
                    for root in walk(load.args[0])
                    if isinstance(root, ast.Name)
                ):
                    node.value = inner
    return module.body


def accumulate(
    body: Sequence[ast.stmt], loads: Mapping[str, ast.Call], whole: frozenset[str] = frozenset()
) -> list[ast.stmt]:
    """`t = acc + v; acc = tl.where(mask, t, acc)` as `acc += tl.where(mask, v, 0.0)`; `whole` sums are of integers."""
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):
            inner = accumulate(statement.body, loads, whole)
            result.append(ast.For(statement.target, statement.iter, inner, [], lineno=0))
            continue
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(args=[*_, dtype])) if ast.unparse(dtype) in (
                "tl.int32",
                "tl.int64",
            ):
                whole |= {name}
        result.append(statement)
        if len(result) >= 2 and (merged := _accumulated(result, loads, whole)) is not None:
            result[:] = merged
    return result


def _accumulated(done: list[ast.stmt], loads: Mapping[str, ast.Call], whole: frozenset[str]) -> list[ast.stmt] | None:
    match done[-1]:
        case ast.Assign(targets=[ast.Name(total)], value=value):
            pass
        case _:
            return None
    match value:
        case ast.Name(new):
            mask: ast.expr | None = None
        case ast.Call(func=func, args=[mask, ast.Name(new), ast.Name(old)]) if (
            old == total and ast.unparse(func) == "tl.where"
        ):
            pass
        case _:
            return None
    for position in range(len(done) - 2, -1, -1):
        match done[position]:
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.BinOp(left=ast.Name(left), op=ast.Add(), right=right)
            ) if name == new and left == total:
                if uses(done[position + 1 : -1])[new]:
                    return None
                if mask is not None and not _is_zero_outside(right, mask, loads):
                    right = call("tl.where", mask, right, "0" if total in whole else "0.0")
                update = ast.AugAssign(ast.Name(total, ast.Store()), ast.Add(), right)
                return [*done[:position], *done[position + 1 : -1], update]
    return None


def _is_zero_outside(value: ast.expr, mask: ast.expr, loads: Mapping[str, ast.Call]) -> bool:
    load = loads.get(ast.unparse(value))
    if load is None:
        return False
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in load.keywords}
    return ast.unparse(mask) in keywords.get("mask", "").split(" & ") and keywords.get("other") == "0.0"


def inline(body: Sequence[ast.stmt], assigned: Callable[[str], int]) -> list[ast.stmt]:
    """Writes what is used once, and nearby, into its use."""
    read = uses(body)
    result: list[ast.stmt] = []
    pending: dict[str, ast.expr] = {}
    for statement in body:
        if isinstance(statement, ast.For):
            result.append(ast.For(statement.target, statement.iter, inline(statement.body, assigned), [], lineno=0))
            continue
        names = [name for name in uses([statement]) if name in pending]
        for name in names:
            merged = substitute(copied(statement), {name: pending[name]})
            if len(ast.unparse(merged)) <= _WIDTH:
                statement = merged
                result[:] = [done for done in result if not _assigns(done, name)]
            del pending[name]
        result.append(statement)
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=value) if (
                read[name] == 1
                and assigned(name) == 1
                and all(assigned(other) <= 1 for other in uses([value]))
                and not _is_kept(value)
            ):
                pending[name] = value
    return result


class _Comparisons(ast.NodeTransformer):
    """Without casts of integers to int64, which changes no comparison."""

    def __init__(self, is_integer: Callable[[ast.expr], bool]) -> None:
        self._is_integer = is_integer

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        sides = [self._plain(side) for side in [node.left, *node.comparators]]
        if all(self._is_integer(side) for side in sides):
            node.left, *node.comparators = sides
        return node

    def _plain(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[dtype]) if ast.unparse(dtype) == "tl.int64":
                return value
        return node


def plain_comparisons(body: Sequence[ast.stmt], is_integer: Callable[[ast.expr], bool]) -> list[ast.stmt]:
    return [_Comparisons(is_integer).visit(statement) for statement in body]


def plain_padding(body: Sequence[ast.stmt], types: Mapping[str, str]) -> list[ast.stmt]:
    """`other=0` where integers are loaded; `types` are those of the pointers, as Triton writes them."""
    module = copied(ast.Module(list(body), []))
    for node in walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr="load"), args=[address, *_], keywords=keywords):
                roots = [types.get(root.id, "") for root in walk(address) if isinstance(root, ast.Name)]
                for keyword in keywords:
                    if ast.unparse(keyword.value) == "0.0" and any(kind.startswith(("*i", "*u")) for kind in roots):
                        keyword.value = ast.Constant(0)
    return module.body


def absorb(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """`t = tl.dot(a, b); acc += t` as `acc += tl.dot(a, b)`, where nothing else reads `t`."""
    read = uses(body)
    result: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.For(target=target, iter=steps, body=inner):
                statement = ast.For(target, steps, absorb(inner), [], lineno=0)
            case ast.AugAssign(value=ast.Name(name)) if read[name] == 1 and result and _assigns(result[-1], name):
                value = result[-1].value  # type: ignore[attr-defined]
                if isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.dot":
                    statement.value = value
                    result.pop()
        result.append(statement)
    return result


def _assigns(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name


def _is_kept(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) in _KEPT for node in walk(value))
