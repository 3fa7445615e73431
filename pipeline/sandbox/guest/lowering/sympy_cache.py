"""Speed up sympy for a whole process: answer its most frequent questions about sizes and indices from caches.

Half of the time of a lowering is sympy. Sympy computes the properties of an expression anew for each question, and
derives the same consequences of the same facts for many expressions.
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

_ASSUMPTIONS = sys.modules["sympy.core.assumptions"]  # the attribute of this name in `sympy.core` is a function


@contextlib.contextmanager
def quick_arithmetic() -> Iterator[None]:
    """Install the caches. Enter this once a process: classes are slow after a change."""
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
