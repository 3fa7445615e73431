"""Speed up sympy for a whole process, with the same results: half of the time of a lowering is sympy.

Sympy computes the properties of an expression anew for each question, and derives the same consequences of the same
facts for many expressions: caches answer instead. Inductor's pattern matching of indices tries many terms that cannot
match: types and factors decide first.
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
from torch.fx.experimental import recording
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

_ASSUMPTIONS = sys.modules["sympy.core.assumptions"]  # the attribute of this name in `sympy.core` is a function
_INDEXING = (FloorDiv, ModularIndexing)
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
            (_ASSUMPTIONS, "shuffle", _nothing),  # the order in which related facts are tried has no meaning
            (sizevars, "join_dimensions", _joining(sizevars.join_dimensions)),
            (sympy.Basic, "replace", _replacing(sympy.Basic.replace)),
            (recording.trace_shape_events_log, "debug", _nothing),  # called several times for each computed size
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


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
