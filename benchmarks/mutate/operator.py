"""Mutation operators: each makes one kind of mistake in a candidate's source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from .source_edits import Edit, Kernel, Source


class Fault(StrEnum):
    """Classes of mistakes."""

    ARITHMETIC = "arithmetic"
    INDEXING = "indexing"
    MASKING = "masking"
    REDUCTION = "reduction"
    PRECISION = "precision"
    DTYPE = "dtype"
    SYNCHRONISATION = "synchronisation"
    PARAMETERS = "parameters"
    SHAPES = "shapes"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of mistake, and the function that finds the places for it."""

    name: str
    fault: Fault
    what: str  # the mistake, in a few words
    find: Callable[[Source], Iterator[Edit]]

    def edits(self, source: Source) -> list[Edit]:
        """All edits that make this mistake in `source`, by position."""
        return sorted(set(self.find(source)))


def source_operator(fault: Fault, what: str) -> Callable[[Callable[[Source], Iterator[Edit]]], Operator]:
    """Decorate a function that finds edits in a source; the operator takes the function's name."""
    return lambda find: Operator(find.__name__, fault, what, find)


def kernel_operator(fault: Fault, what: str) -> Callable[[Callable[[Kernel], Iterator[Edit]]], Operator]:
    """Decorate a function that finds edits in a kernel: the operator searches every kernel of the source."""

    def decorate(find: Callable[[Kernel], Iterator[Edit]]) -> Operator:
        return Operator(find.__name__, fault, what, lambda source: (e for k in source.kernels for e in find(k)))

    return decorate
