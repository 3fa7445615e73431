"""Speed up sympy for a whole process, with the same results: half of the time of a lowering is sympy.

Sympy computes the properties of an expression anew for each question, and derives the same consequences of the same
facts for many expressions: caches answer instead. Replacing, expanding and comparing walk over expressions that they
cannot change: the symbols and the types inside decide first. Inductor's pattern matching of indices tries many terms
that cannot match: types and factors decide first.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import sympy
from sympy.core.facts import FactKB
from sympy.core.relational import Equality, _Inequality
from torch._inductor import sizevars
from torch._inductor.sizevars import SizeVarAllocator
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

_ASSUMPTIONS = sys.modules["sympy.core.assumptions"]  # the attribute of this name in `sympy.core` is a function
_INDEXING = (FloorDiv, ModularIndexing)
_RECORDER = ShapeEnv._create_fx_call_function.__code__
_MODULUS = sympy.Wild("modulus", integer=True)  # any modulus


@contextlib.contextmanager
def quick_sympy() -> Iterator[None]:
    """Patch sympy and Inductor. Enter this once a process: classes are slow after a change."""
    free_symbols = functools.cache(vars(sympy.Basic)["free_symbols"].fget)
    # Evaluate a relation once. Integers and equal floats make different relations.
    relation = functools.lru_cache(None, typed=True)
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (sympy.Basic, "args", vars(sympy.Basic)["_args"]),  # the property only returns this slot
            (sympy.Basic, "free_symbols", property(lambda self: free_symbols(self).copy())),  # callers change theirs
            (sympy.Expr, "is_number", property(functools.cache(vars(sympy.Expr)["is_number"].fget))),
            (_Inequality, "__new__", relation(_Inequality.__new__)),
            (Equality, "__new__", relation(Equality.__new__)),
            (FactKB, "deduce_all_facts", _deducing(FactKB.deduce_all_facts)),
            (_ASSUMPTIONS, "shuffle", lambda *args: None),  # the order in which related facts are tried has no meaning
            (sizevars, "join_dimensions", _joining(sizevars.join_dimensions)),
            (sympy.Basic, "replace", _replacing(sympy.Basic.replace)),
            (sympy.Basic, "xreplace", _substituting(sympy.Basic.xreplace, free_symbols)),
            (sympy.Expr, "__eq__", _comparing(sympy.Expr.__eq__)),
            (sympy, "expand", _expanding(sympy.expand)),
            (SizeVarAllocator, "_simplify_with_ranges", _simplifying(SizeVarAllocator._simplify_with_ranges)),
            *_unrecorded(ShapeEnv),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def _unrecorded(owner: type) -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """The methods that can record their calls, without the recorder: it is for debugging, and runs for each size."""
    for name, method in list(vars(owner).items()):
        if getattr(method, "__code__", None) is _RECORDER:
            yield owner, name, method.__wrapped__


def _deducing(deduce: Callable[[FactKB, Any], None]) -> Callable[[FactKB, Any], None]:
    """Cache the consequences of new facts by the facts known before."""
    known: dict[Any, dict[str, bool | None]] = {}

    def quick(self: FactKB, facts: Any) -> None:
        new = tuple(facts.items() if isinstance(facts, dict) else facts)
        key = frozenset(self.items()), new
        if key in known:
            self.update(known[key])
        else:
            deduce(self, new)
            known[key] = dict(self)

    return quick


def _substituting(xreplace: Callable[..., Any], free_symbols: Callable[[Any], set[Any]]) -> Callable[..., Any]:
    """Replace symbols by a rule without those that the expression does not have; cache the results."""
    known: dict[Any, Any] = {}

    def quick(self: sympy.Basic, rule: Any) -> Any:
        if type(rule) is not dict or not all(type(key) is sympy.Symbol for key in rule):
            return xreplace(self, rule)
        if type(self) is sympy.Symbol:
            return rule.get(self, self)
        found = {symbol: rule[symbol] for symbol in free_symbols(self) if symbol in rule}
        if not found:
            return self
        # Equal numbers of different types make different expressions.
        key = self, *((symbol, type(value), value) for symbol, value in found.items())
        if key not in known:
            known[key] = xreplace(self, found)
        return known[key]

    return quick


def _comparing(equal: Callable[..., bool]) -> Callable[..., bool]:
    """Compare expressions of one type by their hashes first, which they store."""

    def quick(self: sympy.Expr, other: Any) -> bool:
        if self is other:
            return True
        if type(self) is type(other) and hash(self) != hash(other):
            return False
        return equal(self, other)

    return quick


def _expanding(expand: Callable[..., Any]) -> Callable[..., Any]:
    """Leave expressions that are sums of products already."""

    def quick(e: Any, **hints: Any) -> Any:
        return e if not hints and isinstance(e, sympy.Basic) and _is_expanded(e) else expand(e, **hints)

    return quick


@functools.cache
def _is_expanded(expr: sympy.Basic) -> bool:
    """True if the expression is a sum of products of symbols, integers and indexing of such sums."""
    match expr:
        case sympy.Integer() | sympy.Symbol():
            return True
        case sympy.Add() | FloorDiv() | ModularIndexing():
            return all(map(_is_expanded, expr.args))
        case sympy.Mul():
            return all(not factor.is_Add and _is_expanded(factor) for factor in expr.args)
        case sympy.Pow(args=(base, exponent)):
            return isinstance(base, sympy.Symbol) and isinstance(exponent, sympy.Integer) and exponent.is_positive
    return False


def _simplifying(simplify: Callable[..., Any]) -> Callable[..., Any]:
    """Simplify an index by the ranges of its variables only if it has a division or a remainder."""

    def quick(self: SizeVarAllocator, expr: sympy.Expr, ranges: Any) -> Any:
        plain = self.simplify(expr)
        return simplify(self, expr, ranges) if _has_indexing(plain) else plain

    return quick


@functools.cache
def _has_indexing(expr: sympy.Basic) -> bool:
    return isinstance(expr, _INDEXING) or any(map(_has_indexing, expr.args))


def _joining(join: Callable[[sympy.Expr], sympy.Expr]) -> Callable[[sympy.Expr], sympy.Expr]:
    """Join `x % a + a * (x // a)` to `x`, trying only terms with a division or a remainder that fit each other."""

    def quick(expr: sympy.Expr) -> sympy.Expr:
        if not isinstance(expr, sympy.Add):
            return expr
        tried = [term for term in expr.args if any(map(_is_indexing, sympy.Mul.make_args(term)))]
        if len(tried) < 2 or not _has_parts(tried):
            return expr
        rest = [term for term in expr.args if term not in tried]
        part = sympy.Add(*tried) if rest else expr
        joined = found if (found := joined_once(part)) is not None else join(part)
        return expr if joined == part else sympy.Add(joined, *rest)

    def joined_once(expr: sympy.Add) -> sympy.Expr | None:
        """`expr` with two of its terms joined, and joined again; None if only sympy's matching can tell."""
        terms = [(term, _split(term)) for term in expr.args]
        if not all(split for _, split in terms):
            return None
        first = [(term, *split) for term, split in terms if split and isinstance(split[1], ModularIndexing)]
        for term, scale, (base, divisor, modulus) in ((term, scale, factor.args) for term, scale, factor in first):
            next_part = ModularIndexing(base, divisor * modulus, _MODULUS)
            if not isinstance(next_part, ModularIndexing) or next_part.args[2] != _MODULUS:
                return None
            for other, _, factor in first:
                if factor.args[:2] == next_part.args[:2] and other == scale * modulus * factor and other != term:
                    both = ModularIndexing(base, divisor, modulus * factor.args[2])
                    return quick(expr - term - other + scale * both)
        for term, scale, (base, divisor, modulus) in ((term, scale, factor.args) for term, scale, factor in first):
            last_part = FloorDiv(base, divisor * modulus)
            if not isinstance(last_part, FloorDiv):
                return None
            if scale * modulus * last_part in expr.args:
                return quick(expr - term - scale * modulus * last_part + scale * FloorDiv(base, divisor))
        return expr

    return quick


def _split(term: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
    """A term as a scale times one division or remainder; None if it is another product."""
    factors = sympy.Mul.make_args(term)
    indexing = [factor for factor in factors if isinstance(factor, _INDEXING)]
    scale = [factor for factor in factors if factor not in indexing]
    if len(indexing) != 1 or any(map(_has_indexing, scale)):
        return None
    return sympy.Mul(*scale), indexing[0]


def _has_parts(terms: Sequence[sympy.Expr]) -> bool:
    """True if a term has a factor `(x // a) % b` and another term `x // (a * b)` or a remainder of that."""
    factors = [[_base(factor) for factor in sympy.Mul.make_args(term) if _is_indexing(factor)] for term in terms]
    for number, term in enumerate(factors):
        others = [factor for other in (*factors[:number], *factors[number + 1 :]) for factor in other]
        for base, divisor, modulus in (factor.args for factor in term if isinstance(factor, ModularIndexing)):
            rest = FloorDiv(base, divisor * modulus), ModularIndexing(base, divisor * modulus, _MODULUS)
            if not all(isinstance(part, _INDEXING) for part in rest):  # sympy has simplified it: no quick answer
                return True
            if any(type(part) is type(other) and part.args[:2] == other.args[:2] for part in rest for other in others):
                return True
    return False


def _is_indexing(factor: sympy.Expr) -> bool:
    return isinstance(_base(factor), _INDEXING)


def _base(factor: sympy.Expr) -> sympy.Expr:
    return factor.base if isinstance(factor, sympy.Pow) else factor


def _replacing(replace: Callable[..., Any]) -> Callable[..., Any]:
    """Replace by type where every argument of a pattern is an unrestricted wildcard."""

    def quick(self: sympy.Basic, query: Any, value: Any = None, **options: Any) -> Any:
        if options or not (isinstance(query, _INDEXING) and callable(value) and _is_unrestricted(query)):
            return replace(self, query, value, **options)
        kind, names = type(query), [wild.name for wild in query.args]

        def walked(expr: sympy.Basic) -> sympy.Basic:
            if not _has_indexing(expr):
                return expr
            args = tuple(map(walked, expr.args))
            if args != expr.args:
                new = expr.func(*args)
                if any(new == old and old != changed for old, changed in zip(expr.args, args, strict=True)):
                    return new  # a part that has been replaced is not replaced again
                expr = new
            # Sympy matches zero with no pattern of several wildcards.
            if isinstance(expr, kind) and all(expr.args):
                found = value(**dict(zip(names, expr.args, strict=True)))
                return expr if found is None else found
            return expr

        return walked(self)

    return quick


def _is_unrestricted(pattern: sympy.Basic) -> bool:
    wilds = pattern.args
    free = (isinstance(wild, sympy.Wild) and not wild.exclude and not wild.properties for wild in wilds)
    return all(free) and len(set(wilds)) == len(wilds)
