"""What Inductor asks most often of sympy's pattern matching, answered without it: the same answers, sooner."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import sympy
from torch._inductor import sizevars
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

_INDEXING = (FloorDiv, ModularIndexing)
_MODULUS = sympy.Wild("modulus", integer=True)  # any


@contextlib.contextmanager
def quick_matching() -> Iterator[None]:
    """Lets Inductor simplify indexes in this way; for the whole of a process, as in `arithmetic`."""
    with (
        mock.patch.object(sizevars, "join_dimensions", _joining(sizevars.join_dimensions)),
        mock.patch.object(sympy.Basic, "replace", _replacing(sympy.Basic.replace)),
    ):
        yield


def _joining(join: Callable[[sympy.Expr], sympy.Expr]) -> Callable[[sympy.Expr], sympy.Expr]:
    """`x % a + a * (x // a)` as `x`: only terms that have a division or a remainder as a factor are tried in pairs, and
    only where two of them are parts of one index."""

    def quick(expr: sympy.Expr) -> sympy.Expr:
        if not isinstance(expr, sympy.Add):
            return expr
        tried = [term for term in expr.args if any(map(_is_indexing, sympy.Mul.make_args(term)))]
        if len(tried) < 2 or not _has_parts(tried):
            return expr
        if len(tried) == len(expr.args):
            return join(expr)
        part = sympy.Add(*tried)
        joined = join(part)
        return expr if joined == part else sympy.Add(joined, *(term for term in expr.args if term not in tried))

    return quick


def _has_parts(terms: Sequence[sympy.Expr]) -> bool:
    """Whether one term has `(x // a) % b` as a factor and another what it can be joined with: `x // (a * b)`, or a
    remainder of that."""
    factors = [[_root(factor) for factor in sympy.Mul.make_args(term) if _is_indexing(factor)] for term in terms]
    for here, term in enumerate(factors):
        others = [factor for there, other in enumerate(factors) if there != here for factor in other]
        for base, divisor, modulus in (factor.args for factor in term if isinstance(factor, ModularIndexing)):
            rest = FloorDiv(base, divisor * modulus), ModularIndexing(base, divisor * modulus, _MODULUS)
            if not all(isinstance(part, _INDEXING) for part in rest):  # it is some other expression
                return True
            if any(type(part) is type(other) and part.args[:2] == other.args[:2] for part in rest for other in others):
                return True
    return False


def _is_indexing(factor: sympy.Expr) -> bool:
    return isinstance(_root(factor), _INDEXING)


def _root(factor: sympy.Expr) -> sympy.Expr:
    return factor.base if isinstance(factor, sympy.Pow) else factor


def _replacing(replace: Callable[..., Any]) -> Callable[..., Any]:
    """A pattern whose every argument may be anything is a question of type alone."""

    def quick(self: sympy.Basic, query: Any, value: Any = None, **options: Any) -> Any:
        if not (isinstance(query, _INDEXING) and callable(value) and _is_anything(query)):
            return replace(self, query, value, **options)
        kind, names = type(query), [wild.name for wild in query.args]

        def called(*args: sympy.Expr) -> Any:
            # Zero is nothing that sympy matches several wildcards with.
            return value(**dict(zip(names, args, strict=True))) if all(args) else kind(*args)

        return replace(self, kind, called)

    return quick


def _is_anything(pattern: sympy.Basic) -> bool:
    wilds = pattern.args
    free = (isinstance(wild, sympy.Wild) and not wild.exclude and not wild.properties for wild in wilds)
    return all(free) and len(set(wilds)) == len(wilds)
