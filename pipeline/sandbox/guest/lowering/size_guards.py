"""Turn a trace's assumptions about symbolic sizes into conditions that the caller of the kernels can check.

Most assumptions do not change the kernels, such as that no size makes a tensor contiguous in two layouts at once. Two
kinds do: two sizes are equal, so that one is written for the other, and the branches that the module's own `if`s took.
A condition that follows from other conditions, judged by samples, is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import sympy
import torch
from torch._guards import ShapeGuard
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.printers import PythonPrinter

_TORCH = Path(torch.__file__).parent
# Parts of torch that choose by sizes among formulas with different results, not only layouts.
_CHOOSING = ("nn", "_decomp", "functional.py", "_tensor.py")
_TRIED = range(2, 600)  # sizes on which conditions are compared; a symbol is at least 2
_MOST_DIVISOR = 64
_SIZE = re.compile(r"(input|state)(\d+)_(\d+)")

Values = Mapping[str, int]
Condition = Callable[[Values], bool]


def conditions(
    shape_env: ShapeEnv,
    symbols: Mapping[sympy.Symbol, str],
    sizes: Mapping[sympy.Symbol, sympy.Expr],
    calls: Sequence[Values],
) -> list[str]:
    """The conditions as Python expressions; `input0_1` is the size of axis 1 of the first tensor of a call.

    `symbols` have such names, or `state0_1` for a size of the module. `sizes` are symbols computed from others;
    `calls` are sizes of calls that satisfy all assumptions.
    """
    named = {symbol: sympy.Symbol(name, integer=True) for symbol, name in symbols.items()}
    assumed = [part.xreplace(sizes).xreplace(named) for guard in shape_env.guards for part in _parts(guard)]
    ties = [expr for expr in assumed if isinstance(expr, sympy.Eq)]
    same = _same([expr for expr in ties if all(isinstance(side, sympy.Symbol) for side in expr.args)])
    found = [f"{name} == {first}" for name, first in sorted(same.items())]
    replaced = {sympy.Symbol(name, integer=True): sympy.Symbol(first, integer=True) for name, first in same.items()}
    texts = {_text(_reduced(expr.xreplace(replaced))) for expr in assumed}
    simple = _by_size(sorted(texts))
    if not simple:
        return found
    points = _points(calls, [_compiled(text) for text in _extents(texts)])
    return found + sorted(_needed(simple, points))


def _parts(guard: ShapeGuard) -> Iterator[sympy.Expr]:
    """The relevant conjuncts of an assumption."""
    where = guard.sloc.framework_loc
    file = Path(getattr(where, "filename", ""))
    chosen = not file.is_relative_to(_TORCH) or file.relative_to(_TORCH).parts[0] in _CHOOSING
    for part in sympy.And.make_args(guard.expr):
        if part != sympy.true and (chosen or isinstance(part, sympy.Eq)):
            yield part


def _same(ties: Iterable[sympy.Expr]) -> dict[str, str]:
    """Size -> the first size that it equals."""
    groups: list[set[str]] = []
    for tie in ties:
        new = {str(side) for side in tie.args}
        groups = [group for group in groups if not group & new] + [new.union(*(g for g in groups if g & new))]
    firsts = {name: min(group, key=_place) for group in groups for name in group}
    return {name: first for name, first in firsts.items() if name != first}


def _place(name: str) -> tuple[bool, int, int]:
    """Sorts sizes: those of the module, then those of a call."""
    source, index, axis = _SIZE.fullmatch(name).groups()  # type: ignore[union-attr]
    return source == "input", int(index), int(axis)


def _reduced(expr: sympy.Expr) -> sympy.Expr:
    """An equality without common factors of both sides."""
    if not isinstance(expr, sympy.Eq):
        return expr
    factors = sympy.Mul.make_args(sympy.factor_terms(sympy.expand(expr.lhs - expr.rhs)))
    terms = [sympy.Add.make_args(factor) for factor in factors if isinstance(factor, sympy.Add)]
    if len(terms) != 1:
        return expr
    negative = [term for term in terms[0] if term.could_extract_minus_sign()]
    positive = [term for term in terms[0] if term not in negative]
    return sympy.Eq(sympy.Add(*positive), -sympy.Add(*negative))


def _text(expr: sympy.Expr) -> str:
    return ast.unparse(ast.parse(PythonPrinter().doprint(expr), mode="eval"))


def _compiled(text: str) -> Condition:
    code = compile(text, "<guard>", "eval")

    def holds(values: Values) -> bool:
        try:
            return bool(eval(code, {"__builtins__": {}, "min": min, "max": max}, dict(values)))
        except ZeroDivisionError:  # a size that rounds down to 0
            return False

    return holds


def _names(text: str) -> list[str]:
    return sorted({n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and _SIZE.fullmatch(n.id)})


def _by_size(texts: Sequence[str]) -> list[str]:
    """The conditions, with those about one size in their simplest form."""
    alone: dict[str, list[str]] = {}
    for text in texts:
        if len(names := _names(text)) == 1:
            alone.setdefault(names[0], []).append(text)
    kept = [text for text in texts if len(_names(text)) > 1]
    for name, conditions_of_one in alone.items():
        holds = [_compiled(text) for text in conditions_of_one]
        true = [value for value in _TRIED if all(one({name: value}) for one in holds)]
        kept += _described(name, true) or conditions_of_one
    return kept


def _described(name: str, true: Sequence[int]) -> list[str]:
    """Simple conditions that hold for exactly these sizes of the tried ones; [] if there are none."""
    low, high = true[0], true[-1]
    if len(true) == 1:
        return [f"{name} == {low}"]
    step = true[1] - low
    if step > _MOST_DIVISOR or list(true) != list(range(low, high + 1, step)):
        return []
    found = [f"{name} % {step} == {low % step}"] if step > 1 else []
    if low - step >= _TRIED[0]:
        found.append(f"{name} >= {low}")
    if high + step <= _TRIED[-1]:
        found.append(f"{name} <= {high}")
    return found or [f"{name} >= {_TRIED[0]}"]


def _extents(texts: Iterable[str]) -> list[str]:
    """Conditions that no tensor is empty, from strides with `max(1, size)`."""
    calls = [n for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and len(n.args) == 2]
    return sorted({f"{ast.unparse(call.args[1])} > 0" for call in calls if ast.unparse(call.args[0]) == "1"})


def _points(bases: Sequence[Values], holds: Sequence[Condition]) -> list[Values]:
    """Calls with one size changed that satisfy the conditions."""
    changed: list[Values] = [{**base, name: value} for base in bases for name in base for value in _TRIED]
    return [point for point in changed if all(condition(point) for condition in holds)]


def _needed(texts: Iterable[str], points: Sequence[Values]) -> list[str]:
    """The conditions, simple ones first, without those that follow from others at these points."""
    kept = []
    for text in sorted(texts, key=lambda text: (len(_names(text)), len(text), text)):
        holds = _compiled(text)
        if not all(map(holds, points)):
            kept.append(text)
            points = [point for point in points if holds(point)]
    return kept
