"""What sympy is asked most often of sizes and indexes, with the same answers, sooner.

Half of a lowering is sympy. It asks anew what it knows of an expression that it has seen, and derives anew what follows
from facts that many expressions share.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import sympy
from sympy.core.facts import FactKB
from sympy.core.relational import Equality, _Inequality
from torch.fx.experimental import recording

_ASSUMPTIONS = sys.modules["sympy.core.assumptions"]  # sympy has a function of that name in its place


@contextlib.contextmanager
def quick_arithmetic() -> Iterator[None]:
    """For the whole of a process: sympy's classes are slow where they were changed just now."""
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (sympy.Basic, "args", vars(sympy.Basic)["_args"]),  # a property that says no more than this slot
            (sympy.Basic, "free_symbols", _free_symbols()),
            (sympy.Expr, "is_number", property(functools.cache(vars(sympy.Expr)["is_number"].fget))),
            (_Inequality, "__new__", _kept(_Inequality.__new__)),
            (Equality, "__new__", _kept(Equality.__new__)),
            (FactKB, "deduce_all_facts", _deducing(FactKB.deduce_all_facts)),
            (_ASSUMPTIONS, "shuffle", _nothing),  # the order in which related facts are tried, which means nothing
            (recording.trace_shape_events_log, "debug", _nothing),  # several times for each size that is computed
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _free_symbols() -> property:
    found = functools.cache(vars(sympy.Basic)["free_symbols"].fget)
    return property(lambda self: found(self).copy())  # a caller may change its own


def _kept(make: Callable[..., Any]) -> Callable[..., Any]:
    """A relation is evaluated once; whole numbers and others that are equal to them make different ones."""
    return functools.lru_cache(None, typed=True)(make)


def _deducing(deduce: Callable[[FactKB, Any], None]) -> Callable[[FactKB, Any], None]:
    """What follows from facts in the light of those that are known, which are few and the same for most expressions."""
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
