"""Passes over a simplified kernel body: drop unused values and inline values that are used once."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..syntax.ast_tools import called, copied, keywords_of, names_in, substitute, walk, with_body
from .forms import loaded
from .triton_functions import call
from .value_types import element

_WIDTH = 88  # most characters of a statement after another expression was inlined into it
_NOT_INLINED = frozenset(
    "tl.load tl.dot tl.sum tl.max tl.min tl.reduce tl.sort tl.cumsum tl.associative_scan nan_max nan_min any_true "
    "arg_max arg_min".split()
)


def uses(nodes: Sequence[ast.AST]) -> Counter[str]:
    """Count the reads of each name."""
    return Counter(
        child.id
        for node in nodes
        for child in walk(node)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)
    )


def without_dead_code(body: list[ast.stmt]) -> list[ast.stmt]:
    """Drop assignments to names that nothing reads, and loops that become empty."""
    while True:
        kept = _live(body, uses(body))
        if _count(kept) == _count(body):
            return kept
        body = kept


def _count(body: Sequence[ast.stmt]) -> int:
    return sum(isinstance(node, ast.stmt) for statement in body for node in walk(statement))


def _live(body: Sequence[ast.stmt], read: Counter[str]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                if read[name] > uses([value])[name]:  # an accumulator that only its own update reads is dead too
                    kept.append(statement)
            case ast.Assign(targets=[ast.Tuple() as names]):
                if any(read[name] for name in names_in(names)):
                    kept.append(statement)
            case ast.For():
                if live := _live(statement.body, read):
                    kept.append(with_body(statement, live))
            case _:
                kept.append(statement)
    return kept


def without_round_trips(body: Sequence[ast.stmt], types: Mapping[str, str]) -> list[ast.stmt]:
    """Drop casts of half-precision loads to float32 whose every use casts them back, as operands of `tl.dot` are.

    `types` are the pointer types as Triton writes them.
    """
    if not {"*fp16", "*bf16"} & set(types.values()):
        return list(body)
    module = copied(ast.Module(list(body), []))
    reads = uses([module])
    casts = Counter(
        (node.func.value.id, ast.unparse(node.args[0]))
        for node in walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        if isinstance(node.func.value, ast.Name)
    )
    for node in walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Attribute(value=inner, attr="to"))):
                if (load := loaded(inner)) is not None and any(
                    casts[name, f"tl.{element(types.get(root, ''))}"] == reads[name] > 0
                    for root in names_in(load.args[0])
                ):
                    node.value = inner
    return module.body


def accumulate(
    body: Sequence[ast.stmt], loads: Mapping[str, ast.Call], integers: frozenset[str] = frozenset()
) -> list[ast.stmt]:
    """Rewrite `t = acc + v; acc = tl.where(mask, t, acc)` to `acc += tl.where(mask, v, 0.0)`.

    `loads` maps names to the loads that give them; `integers` are names of integer sums.
    """
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):
            result.append(with_body(statement, accumulate(statement.body, loads, integers)))
            continue
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(args=[*_, dtype])):
                if ast.unparse(dtype) in ("tl.int32", "tl.int64"):
                    integers |= {name}
        result.append(statement)
        if (merged := _accumulated(result, loads, integers)) is not None:
            result = merged
    return result


def _accumulated(
    done: list[ast.stmt], loads: Mapping[str, ast.Call], integers: frozenset[str]
) -> list[ast.stmt] | None:
    """The statements with the last one as an update of a sum; None if it is no such update."""
    mask: ast.expr | None = None
    match done[-1]:
        case ast.Assign(targets=[ast.Name(total)], value=ast.Name(new)):
            pass
        case ast.Assign(
            targets=[ast.Name(total)], value=ast.Call(args=[mask, ast.Name(new), ast.Name(old)]) as where
        ) if old == total and called(where) == "tl.where":
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
                    right = call("tl.where", mask, right, "0" if total in integers else "0.0")
                update = ast.AugAssign(ast.Name(total, ast.Store()), ast.Add(), right)
                return [*done[:position], *done[position + 1 : -1], update]
    return None


def _is_zero_outside(value: ast.expr, mask: ast.expr, loads: Mapping[str, ast.Call]) -> bool:
    """True if the value was loaded under the mask with 0.0 outside."""
    load = loads.get(ast.unparse(value))
    if load is None:
        return False
    keywords = {name: ast.unparse(keyword) for name, keyword in keywords_of(load).items()}
    return ast.unparse(mask) in keywords.get("mask", "").split(" & ") and keywords.get("other") == "0.0"


def inline(body: Sequence[ast.stmt], assigned: Callable[[str], int]) -> list[ast.stmt]:
    """Write values that are used once into their uses, as far as the statements stay short.

    `assigned` counts the assignments to a name. Loads, products and reductions keep their names.
    """
    read = uses(body)
    result: list[ast.stmt] = []
    pending: dict[str, ast.expr] = {}
    for statement in body:
        if isinstance(statement, ast.For):
            result.append(with_body(statement, inline(statement.body, assigned)))
            continue
        for name in [name for name in uses([statement]) if name in pending]:
            merged = substitute(copied(statement), {name: pending.pop(name)})
            if len(ast.unparse(merged)) <= _WIDTH:
                statement = merged
                result = [done for done in result if not _assigns(done, name)]
        result.append(statement)
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=value) if (
                read[name] == 1
                and assigned(name) == 1
                and all(assigned(other) <= 1 for other in uses([value]))
                and not any(called(node) in _NOT_INLINED for node in walk(value))
            ):
                pending[name] = value
    return result


def plain_comparisons(body: Sequence[ast.stmt], is_integer: Callable[[ast.expr], bool]) -> list[ast.stmt]:
    """Drop casts to int64 from both sides of comparisons of integers, which they do not change."""

    def plain(node: ast.expr) -> ast.expr:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[dtype]) if ast.unparse(dtype) == "tl.int64":
                return value
        return node

    for node in (node for statement in body for node in walk(statement) if isinstance(node, ast.Compare)):
        sides = [plain(side) for side in [node.left, *node.comparators]]
        if all(is_integer(side) for side in sides):
            node.left, *node.comparators = sides
    return list(body)


def plain_padding(body: Sequence[ast.stmt], types: Mapping[str, str]) -> list[ast.stmt]:
    """Write `other=0` in loads of integers; `types` are the pointer types as Triton writes them."""
    module = copied(ast.Module(list(body), []))
    for node in walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr="load"), args=[address, *_], keywords=keywords):
                is_integer = any(types.get(root, "").startswith(("*i", "*u")) for root in names_in(address))
                for keyword in keywords:
                    if is_integer and ast.unparse(keyword.value) == "0.0":
                        keyword.value = ast.Constant(0)
    return module.body


def absorb(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Rewrite `t = tl.dot(a, b); acc += t` to `acc += tl.dot(a, b)` where nothing else reads `t`."""
    read = uses(body)
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):
            statement = with_body(statement, absorb(statement.body))
        match [*result[-1:], statement]:
            case [ast.Assign(targets=[ast.Name(name)], value=value), ast.AugAssign(value=ast.Name(added))] if (
                name == added and read[name] == 1 and called(value) == "tl.dot"
            ):
                statement.value = value  # type: ignore[attr-defined]
                result.pop()
        result.append(statement)
    return result


def _assigns(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name
