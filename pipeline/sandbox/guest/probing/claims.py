"""What a check of the module's own asked for when it failed: its comparisons, with the values that they had.

Modules check what they are given with few words or none (`assert x.shape[1] == self.channels`). The comparisons are
evaluated once more where the check failed, and told as torch's messages tell it, which `repairs` understands.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from types import FrameType
from typing import Any

_RANK = ("ndim", "dim()", "shape)", "size())")  # how an expression for a tensor's rank ends
_LARGEST = 1 << 20
_COLLECTIONS = (list, tuple, set, frozenset, dict)
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.Eq: ast.NotEq,
    ast.NotIn: ast.In,
    ast.In: ast.NotIn,
}


def claims(frame: FrameType, line: int) -> str:
    """What the check at this line of the frame's file wants, `"expected 16, got 32"`; "" if there is none."""
    wanted = _checks("".join(linecache.getlines(frame.f_code.co_filename))).get(line, ())
    names = {**frame.f_globals, **frame.f_locals} if wanted else {}
    return "; ".join(dict.fromkeys(text for compared in wanted for text in [_told(compared, names)] if text))


@lru_cache(maxsize=4)
def _checks(code: str) -> dict[int, tuple[ast.Compare, ...]]:
    """Line of an assertion, or of a `raise` below an `if` -> the comparisons that should hold."""
    found: dict[int, tuple[ast.Compare, ...]] = {}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Assert(test) | ast.Expr(ast.Call(ast.Name("_assert") | ast.Attribute(attr="_assert"), [test, *_])):
                found |= dict.fromkeys(_lines(node), tuple(_compared(test)))
            case ast.If(test, body):
                refused = tuple(_opposite(one) for one in _compared(test))
                for raised in (item for item in body if isinstance(item, ast.Raise)):
                    found |= dict.fromkeys(_lines(raised), refused)
    return found


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _compared(test: ast.expr) -> Iterator[ast.Compare]:
    """Each comparison of two; of a chain, those of any two in it that are neighbours or all equal."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for first, second in combinations(range(len(sides)), 2):
                operators = node.ops[first:second]
                if len(operators) == 1 or all(isinstance(op, ast.Eq) for op in operators):
                    yield ast.Compare(sides[first], operators[:1], [sides[second]])


def _opposite(node: ast.Compare) -> ast.Compare:
    return ast.Compare(node.left, [_OPPOSITE.get(type(op), type(op))() for op in node.ops], node.comparators)


def _told(node: ast.Compare, names: Mapping[str, Any]) -> str:
    """What a comparison that does not hold wants; "" of one that holds, or of no numbers."""
    left, right = node.left, node.comparators[0]
    match left, node.ops[0]:
        case ast.BinOp(value, ast.Mod(), by), ast.Eq():
            was, of = _size(value, names), _size(by, names)
            return f"{was} must be divisible by {of}" if was and of and was % of else ""
        case _, ast.Eq():
            return _unequal(ast.unparse(left), _value(left, names), _value(right, names))
        case _, ast.In() if ast.unparse(left).endswith(_RANK):
            was, among = _size(left, names), _value(right, names)
            ranks = [rank for rank in among if type(rank) is int] if isinstance(among, list | tuple | set) else []
            ranks = [] if was in ranks else ranks
            return ", ".join(f"must be {rank}D" for rank in ranks)
        case _, ast.In():
            return _none_of(_value(left, names), _value(right, names))
    return ""


def _none_of(was: Any, among: Any) -> str:
    """For numbers and strings; the order of a set is another one in every process."""
    options = [item for item in among if type(item) in (int, str)] if isinstance(among, _COLLECTIONS) else []
    if not options or was is None or (isinstance(was, int | float | str) and was in options):
        return ""  # of a tensor, `in` would ask for the truth of each of its comparisons
    ordered = sorted(options, key=repr) if isinstance(among, set | frozenset) else options
    return f"{was!r:.40} must be one of {ordered}"


def _unequal(text: str, was: Any, wanted: Any) -> str:
    both = [(was, wanted)]
    if isinstance(was, list | tuple) and isinstance(wanted, list | tuple) and len(was) == len(wanted):
        both = list(zip(was, wanted, strict=True))
    pairs = [(one, other) for one, other in both if type(one) is type(other) is int and one != other]
    if pairs and text.endswith(_RANK):
        return f"must be {wanted}D"
    if pairs and text.startswith("len("):
        return f"{text} must be {wanted}"
    return "; ".join(f"expected {other}, got {one}" for one, other in pairs)


def _size(node: ast.expr, names: Mapping[str, Any]) -> int | None:
    value = _value(node, names)
    return value if type(value) is int and 0 < value < _LARGEST else None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """None if it cannot be computed."""
    expression = ast.fix_missing_locations(ast.Expression(node))
    try:
        return eval(compile(expression, "<check>", "eval"), dict(names))
    except Exception:  # noqa: BLE001  it is the module's own expression
        return None
