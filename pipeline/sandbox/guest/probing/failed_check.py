"""Explain a failed check of the module's own code, such as `assert x.shape[1] == self.channels`.

Such checks often raise with a short message or none. The comparisons of the check are evaluated again in the frame that
raised, and described in the words of torch's own messages, which `repairs` understands.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from types import FrameType
from typing import Any

from .syntax import parsed

_RANK_SUFFIXES = ("ndim", "dim()", "shape)", "size())")  # how the source of a tensor's rank ends
_MAX_SIZE = 1 << 20
_COLLECTIONS = (list, tuple, set, frozenset, dict)
_NEGATED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.Eq: ast.NotEq,
    ast.NotIn: ast.In,
    ast.In: ast.NotIn,
}


def explain_check(frame: FrameType, line: int) -> str:
    """Describe what the check at `line` of the frame's file requires, as in "expected 16, got 32"; "" for no check."""
    checks = _checks("".join(linecache.getlines(frame.f_code.co_filename)))
    required = tuple(_required(*checks[line])) if line in checks else ()
    names = {**frame.f_globals, **frame.f_locals} if required else {}
    return "; ".join(dict.fromkeys(text for comparison in required if (text := _explain(comparison, names))))


@lru_cache(maxsize=4)
def _checks(code: str) -> dict[int, tuple[ast.expr, bool]]:
    """Map each line of an assertion, or of a `raise` in an `if`, to its test and True if the test must fail."""
    checks: dict[int, tuple[ast.expr, bool]] = {}
    for node in parsed(code)[1]:
        match node:
            case ast.Assert(test) | ast.Expr(ast.Call(ast.Name("_assert") | ast.Attribute(attr="_assert"), [test, *_])):
                checks |= dict.fromkeys(_lines(node), (test, False))
            case ast.If(test, body):
                for statement in body:
                    if isinstance(statement, ast.Raise):
                        checks |= dict.fromkeys(_lines(statement), (test, True))
    return checks


def _required(test: ast.expr, is_negated: bool) -> Iterator[ast.Compare]:
    """The comparisons that must hold for a check to pass."""
    for node in _comparisons(test):
        ops = [_NEGATED.get(type(op), type(op))() for op in node.ops] if is_negated else node.ops
        yield ast.Compare(node.left, ops, node.comparators)


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _comparisons(test: ast.expr) -> Iterator[ast.Compare]:
    """The binary comparisons in an expression. A chain gives its neighbours, and all pairs that `==` connects."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for first, second in combinations(range(len(sides)), 2):
                operators = node.ops[first:second]
                if len(operators) == 1 or all(isinstance(op, ast.Eq) for op in operators):
                    yield ast.Compare(sides[first], operators[:1], [sides[second]])


def _explain(node: ast.Compare, names: Mapping[str, Any]) -> str:
    """Describe what a comparison requires; "" if it holds, or if it is not about sizes, ranks or options."""
    left, right = node.left, node.comparators[0]
    match left, node.ops[0]:
        case ast.BinOp(value, ast.Mod(), divisor), ast.Eq():
            size, factor = _size(value, names), _size(divisor, names)
            return f"{size} must be divisible by {factor}" if size and factor and size % factor else ""
        case _, ast.Eq():
            return _explain_unequal(ast.unparse(left), _value(left, names), _value(right, names))
        case _, ast.In() if ast.unparse(left).endswith(_RANK_SUFFIXES):
            rank, options = _size(left, names), _value(right, names)
            ranks = [item for item in options if type(item) is int] if isinstance(options, list | tuple | set) else []
            return "" if rank in ranks else ", ".join(f"must be {item}D" for item in ranks)
        case _, ast.In():
            return _explain_not_in(_value(left, names), _value(right, names))
    return ""


def _explain_not_in(value: Any, among: Any) -> str:
    options = [item for item in among if type(item) in (int, str)] if isinstance(among, _COLLECTIONS) else []
    # `tensor in options` would evaluate the truth of a tensor, so only numbers and strings are looked up.
    if not options or value is None or (isinstance(value, int | float | str) and value in options):
        return ""
    if isinstance(among, set | frozenset):  # iterates in another order in each process
        options.sort(key=repr)
    return f"{value!r:.40} must be one of {options}"


def _explain_unequal(text: str, value: Any, required: Any) -> str:
    pairs = [(value, required)]
    if isinstance(value, list | tuple) and isinstance(required, list | tuple) and len(value) == len(required):
        pairs = list(zip(value, required, strict=True))
    pairs = [(one, other) for one, other in pairs if type(one) is type(other) is int and one != other]
    if pairs and text.endswith(_RANK_SUFFIXES):
        return f"must be {required}D"
    if pairs and text.startswith("len("):
        return f"{text} must be {required}"
    shapes = f"{tuple(value)} must be {tuple(required)}" if len(pairs) > 1 else ""
    return "; ".join(filter(None, (shapes, *(f"expected {other}, got {one}" for one, other in pairs))))


def _size(node: ast.expr, names: Mapping[str, Any]) -> int | None:
    value = _value(node, names)
    return value if type(value) is int and 0 < value < _MAX_SIZE else None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of the expression; None if evaluating it raises."""
    expression = ast.fix_missing_locations(ast.Expression(node))
    try:
        return eval(compile(expression, "<check>", "eval"), dict(names))
    except Exception:  # noqa: BLE001  untrusted code
        return None
