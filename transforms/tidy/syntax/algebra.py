"""Integer polynomials over syntax trees: sizes, strides and offsets in one readable form.

Anything that is not `+`, `-`, `*` of integers is an atom (`row % 8`, `size // 2`), itself in readable form inside.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from kernelquarry.pipeline.schema.parse_python import parse_expression

Monomial = tuple[str, ...]  # sorted atoms, a power is a repetition

_CALLS = {"div_floor_integer": ast.FloorDiv, "remainder_integer": ast.Mod}


class Polynomial:
    """`terms` maps monomials to coefficients, none of them zero."""

    def __init__(self, terms: Mapping[Monomial, int] | None = None) -> None:
        self.terms = {monomial: factor for monomial, factor in (terms or {}).items() if factor}

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Polynomial(terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Polynomial(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def constant(self) -> int | None:
        """The value, if there are no atoms in it."""
        return self.terms.get((), 0) if self.terms.keys() <= {()} else None

    @property
    def atoms(self) -> set[str]:
        return {atom for monomial in self.terms for atom in monomial}


def number(value: int) -> Polynomial:
    return Polynomial({(): value})


def polynomial(node: ast.expr) -> Polynomial:
    """The polynomial of an integer expression."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return number(-1) * polynomial(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return polynomial(left) + polynomial(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return polynomial(left) + number(-1) * polynomial(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return polynomial(left) * polynomial(right)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 <= power <= 8:
            result = number(1)
            for _ in range(power):
                result = result * polynomial(left)
            return result
    atom = _inside(node)
    if isinstance(atom, ast.Constant) and type(atom.value) is int:
        return number(atom.value)
    return Polynomial({(ast.unparse(atom),): 1})


def _inside(node: ast.expr) -> ast.expr:
    match node:
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
            divided = _divided(polynomial(left), op, polynomial(right))
            return divided or ast.BinOp(readable(left), op, readable(right))
    return node


def _divided(left: Polynomial, op: ast.operator, right: Polynomial) -> ast.Constant | None:
    """`left // right` or `left % right` where both are plain numbers."""
    a, b = left.constant, right.constant
    if a is None or not b:
        return None
    return ast.Constant(a // b if isinstance(op, ast.FloorDiv) else a % b)


def readable(node: ast.expr, is_size: Callable[[str], bool] = lambda atom: False) -> ast.expr:
    """The expression as a sum of products, sizes factored out: `(row * height + y) * width + x`."""
    return render(polynomial(node), is_size)


def render(value: Polynomial, is_size: Callable[[str], bool] = lambda atom: False) -> ast.expr:
    size = _shared_size(value, is_size)
    if size is None:
        return _by_factor(value, is_size)
    inner, outer = {}, {}
    for monomial, factor in value.terms.items():
        if size in monomial:
            rest = list(monomial)
            rest.remove(size)
            inner[tuple(rest)] = factor
        else:
            outer[monomial] = factor
    product: ast.expr = ast.BinOp(render(Polynomial(inner), is_size), ast.Mult(), _atom(size))
    return _plus(product, Polynomial(outer), is_size) if outer else product


def _by_factor(value: Polynomial, is_size: Callable[[str], bool]) -> ast.expr:
    """A sum in which a number that several terms are multiplied with, a stride, is said once."""
    counts = Counter(abs(factor) for monomial, factor in value.terms.items() if monomial and abs(factor) > 1)
    factor, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    shared = {monomial: own // factor for monomial, own in value.terms.items() if abs(own) == factor and monomial}
    if times < 2 or all(own < 0 for own in shared.values()):
        return _sum(value, is_size)
    rest = Polynomial({monomial: own for monomial, own in value.terms.items() if monomial not in shared})
    product = ast.BinOp(_sum(Polynomial(shared), is_size), ast.Mult(), ast.Constant(factor))
    return _plus(product, rest, is_size) if rest.terms else product


def _plus(left: ast.expr, right: Polynomial, is_size: Callable[[str], bool]) -> ast.expr:
    if all(factor < 0 for factor in right.terms.values()):
        return ast.BinOp(left, ast.Sub(), render(number(-1) * right, is_size))
    return _chained(left, render(right, is_size))


def _chained(left: ast.expr, right: ast.expr) -> ast.expr:
    """`left + right` without parentheses around a sum."""
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add | ast.Sub):
        return ast.BinOp(_chained(left, right.left), right.op, right.right)
    return ast.BinOp(left, ast.Add(), right)


def _shared_size(value: Polynomial, is_size: Callable[[str], bool]) -> str | None:
    """The size that most terms share; at least two, else factoring gains nothing."""
    counts = Counter(atom for monomial in value.terms for atom in set(monomial) if is_size(atom))
    best = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return best[0] if best[1] > 1 else None


def _sum(value: Polynomial, is_size: Callable[[str], bool]) -> ast.expr:
    if not value.terms:
        return ast.Constant(0)
    ordered = sorted(value.terms.items(), key=lambda term: (-len(term[0]), -abs(term[1]), term[0]))
    ordered.sort(key=lambda term: term[1] < 0)
    result: ast.expr | None = None
    for monomial, factor in ordered:
        term = _product(_ordered(monomial, is_size), abs(factor))
        if result is None:
            result = term if factor > 0 else ast.UnaryOp(ast.USub(), term)
        else:
            result = ast.BinOp(result, ast.Add() if factor > 0 else ast.Sub(), term)
    assert result is not None
    return result


def _ordered(monomial: Monomial, is_size: Callable[[str], bool]) -> list[str]:
    """An index before the size that it is multiplied with, and what needs parentheses last."""
    return sorted(monomial, key=lambda atom: (not atom.isidentifier(), is_size(atom), atom))


def _product(monomial: Iterable[str], factor: int) -> ast.expr:
    factors: list[ast.expr] = [_atom(atom) for atom in monomial]
    if factor != 1 or not factors:
        factors.append(ast.Constant(factor))
    result = factors[0]
    for other in factors[1:]:
        result = ast.BinOp(result, ast.Mult(), other)
    return result


def _atom(text: str) -> ast.expr:
    return ast.Name(text, ast.Load()) if text.isidentifier() else parse_expression(text)


def is_contiguous(shape: list[ast.expr], stride: list[ast.expr]) -> bool:
    """Whether these are the strides of a contiguous tensor; an axis of size 1 may have any."""
    expected = polynomial(ast.Constant(1))
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        count = polynomial(size)
        if count.constant != 1 and polynomial(step) != expected:
            return False
        expected = expected * count
    return True
