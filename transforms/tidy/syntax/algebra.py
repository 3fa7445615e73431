"""Integer polynomials over syntax trees: sizes, strides and offsets in one readable form.

Expressions other than `+`, `-` and `*` of integers are atoms (`row % 8`, `size // 2`), readable inside themselves.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from kernelquarry.pipeline.schema.parse_python import parse_expression

from .ast_tools import copied, source_text

Monomial = tuple[str, ...]  # sorted atoms; a power is a repetition


class Polynomial:
    """`terms` maps monomials to coefficients other than zero."""

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = Counter(self.terms)
        terms.update(other.terms)
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -factor for monomial, factor in self.terms.items()})

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: Counter[Monomial] = Counter()
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                terms[tuple(sorted(left + right))] += a * b
        return Polynomial(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def divided_by(self, other: Polynomial) -> Polynomial | None:
        """The exact quotient; None if there is none, or if `other` is zero."""
        quotient, rest = Polynomial({}), self
        lead = min(other.terms, key=order, default=None)
        while lead is not None and rest.terms:
            top = min(rest.terms, key=order)
            factor, left = divmod(rest.terms[top], other.terms[lead])
            more = without(top, lead)
            if left or more is None:
                return None
            step = Polynomial({more: factor})
            quotient, rest = quotient + step, rest + -(step * other)
        return quotient if lead is not None else None

    def replaced(self, values: Mapping[str, Polynomial]) -> Polynomial:
        """The polynomial with these values in place of atoms."""
        result = Polynomial({})
        for monomial, factor in self.terms.items():
            parts = (values.get(atom) or Polynomial({(atom,): 1}) for atom in monomial)
            result += math.prod(parts, start=Polynomial({(): factor}))
        return result

    @property
    def constant(self) -> int | None:
        """The value of a polynomial without atoms; None for any other."""
        return self.terms.get((), 0) if self.terms.keys() <= {()} else None


def without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """A monomial divided by another one; None if it is no multiple."""
    left = Counter(monomial)
    left.subtract(part)
    return tuple(sorted(left.elements())) if min(left.values(), default=0) >= 0 else None


def order(monomial: Monomial) -> tuple[int, Monomial]:
    """Monomials from the highest degree down: an order that products keep, as a division needs."""
    return -len(monomial), monomial


def number(value: int) -> Polynomial:
    return Polynomial({(): value})


def product(nodes: Iterable[ast.expr]) -> Polynomial:
    """The product of integer expressions, such as the sizes of a shape."""
    return math.prod(map(polynomial, nodes), start=number(1))


def polynomial(node: ast.expr) -> Polynomial:
    """The polynomial of an integer expression."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -polynomial(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return polynomial(left) + polynomial(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return polynomial(left) + -polynomial(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return polynomial(left) * polynomial(right)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 <= power <= 8:
            return product([left] * power)
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
            dividend, divisor = polynomial(left), polynomial(right)
            a, b = dividend.constant, divisor.constant
            if a is not None and b:
                return number(a // b if isinstance(op, ast.FloorDiv) else a % b)
            node = ast.BinOp(render(dividend), op, render(divisor))
    return Polynomial({(source_text(node),): 1})


def render(value: Polynomial, is_size: Callable[[str], bool] = lambda atom: False) -> ast.expr:
    """The polynomial as a sum of products with shared sizes factored out: `(row * height + y) * width + x`."""
    counts = Counter(atom for monomial in value.terms for atom in set(monomial) if is_size(atom))
    size, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    if times < 2:
        return _by_factor(value, is_size)
    inner, outer = {}, {}
    for monomial, factor in value.terms.items():
        if size in monomial:
            rest = list(monomial)
            rest.remove(size)
            inner[tuple(rest)] = factor
        else:
            outer[monomial] = factor
    return _plus(ast.BinOp(render(Polynomial(inner), is_size), ast.Mult(), _atom(size)), Polynomial(outer), is_size)


def _by_factor(value: Polynomial, is_size: Callable[[str], bool]) -> ast.expr:
    """The sum with the coefficient that most terms share, a stride, written once."""
    counts = Counter(abs(factor) for monomial, factor in value.terms.items() if monomial and abs(factor) > 1)
    factor, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    shared = {monomial: own // factor for monomial, own in value.terms.items() if abs(own) == factor and monomial}
    if times < 2 or all(own < 0 for own in shared.values()):
        return _sum(value, is_size)
    rest = Polynomial({monomial: own for monomial, own in value.terms.items() if monomial not in shared})
    return _plus(ast.BinOp(_sum(Polynomial(shared), is_size), ast.Mult(), ast.Constant(factor)), rest, is_size)


def _plus(left: ast.expr, right: Polynomial, is_size: Callable[[str], bool]) -> ast.expr:
    if not right.terms:
        return left
    if all(factor < 0 for factor in right.terms.values()):
        return ast.BinOp(left, ast.Sub(), render(-right, is_size))
    return _chained(left, render(right, is_size))


def _chained(left: ast.expr, right: ast.expr) -> ast.expr:
    """`left + right` without parentheses around a sum on the right."""
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add | ast.Sub):
        return ast.BinOp(_chained(left, right.left), right.op, right.right)
    return ast.BinOp(left, ast.Add(), right)


def _sum(value: Polynomial, is_size: Callable[[str], bool]) -> ast.expr:
    ordered = sorted(value.terms.items(), key=lambda term: (term[1] < 0, -len(term[0]), -abs(term[1]), term[0]))
    result: ast.expr | None = None
    for monomial, factor in ordered:
        term = _term(monomial, abs(factor), is_size)
        if result is None:
            result = term if factor > 0 else ast.UnaryOp(ast.USub(), term)
        else:
            result = ast.BinOp(result, ast.Add() if factor > 0 else ast.Sub(), term)
    return result or ast.Constant(0)


def _term(monomial: Monomial, factor: int, is_size: Callable[[str], bool]) -> ast.expr:
    """The product of atoms and a coefficient: indices first, then sizes, then atoms that need parentheses."""
    atoms = sorted(monomial, key=lambda atom: (not atom.isidentifier(), is_size(atom), atom))
    factors: list[ast.expr] = [_atom(atom) for atom in atoms]
    if factor != 1 or not factors:
        factors.append(ast.Constant(factor))
    result = factors[0]
    for other in factors[1:]:
        result = ast.BinOp(result, ast.Mult(), other)
    return result


def _atom(text: str) -> ast.expr:
    return ast.Name(text, ast.Load()) if text.isidentifier() else parse_expression(text)


class _WithoutMaximum(ast.NodeTransformer):
    """`max(1, size)` -> `size`."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name("max"), args=[ast.Constant(1), size]):
                return size
        return node


def is_contiguous(shape: list[ast.expr], stride: list[ast.expr]) -> bool:
    """True if these are the strides of a contiguous tensor; an axis of size 1 may have any stride.

    A stride `max(1, size)` is torch's for a tensor without elements.
    """
    expected = number(1)
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        count = polynomial(size)
        if count.constant != 1 and polynomial(_WithoutMaximum().visit(copied(step))) != expected:
            return False
        expected = expected * count
    return True
