"""Speed up sympy's pattern matching for a whole process: answer Inductor's most frequent questions without it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import sympy
from torch._inductor import sizevars
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

_INDEXING = (FloorDiv, ModularIndexing)
_MODULUS = sympy.Wild("modulus", integer=True)  # any modulus


@contextlib.contextmanager
def quick_matching() -> Iterator[None]:
    """Simplify indices faster, with the same results."""
    with (
        mock.patch.object(sizevars, "join_dimensions", _joining(sizevars.join_dimensions)),
        mock.patch.object(sympy.Basic, "replace", _replacing(sympy.Basic.replace)),
    ):
        yield


def _joining(join: Callable[[sympy.Expr], sympy.Expr]) -> Callable[[sympy.Expr], sympy.Expr]:
    """Join `x % a + a * (x // a)` to `x`, trying only terms with a division or a remainder that fit each other."""

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
        if not (isinstance(query, _INDEXING) and callable(value) and _is_unrestricted(query)):
            return replace(self, query, value, **options)
        kind, names = type(query), [wild.name for wild in query.args]

        def called(*args: sympy.Expr) -> Any:
            # Sympy matches zero with no pattern of several wildcards.
            return value(**dict(zip(names, args, strict=True))) if all(args) else kind(*args)

        return replace(self, kind, called)

    return quick


def _is_unrestricted(pattern: sympy.Basic) -> bool:
    wilds = pattern.args
    free = (isinstance(wild, sympy.Wild) and not wild.exclude and not wild.properties for wild in wilds)
    return all(free) and len(set(wilds)) == len(wilds)
