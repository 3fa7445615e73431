"""An operator of mutation: one way to get a kernel wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from .source_edits import Edit, Kernel, Source


class Fault(StrEnum):
    """The classes of faults."""

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
    """`find` yields the edits that make this mistake in a source."""

    name: str
    fault: Fault
    what: str  # the mistake, in a few words
    find: Callable[[Source], Iterator[Edit]]


def in_kernels(find: Callable[[Kernel], Iterator[Edit]]) -> Callable[[Source], Iterator[Edit]]:
    """Look for edits in every kernel."""

    def everywhere(source: Source) -> Iterator[Edit]:
        for kernel in source.kernels:
            yield from find(kernel)

    return everywhere
