"""Writes that do not wait, and memory that is used twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .host_side import Sizes, allocations, launches
from .operator import Fault, Operator, in_kernels
from .source_edits import Edit, Kernel, Source


def store_for_atomic(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("atomic_add", "atomic_max", "atomic_min"):
        kept = [part for part in call.keywords if part.arg == "mask"]
        parts = [kernel.source.text(part) for part in (*call.args[:3], *kept)]
        yield kernel.source.replace(call, f"tl.store({', '.join(parts)})")


def barrier_removed(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("debug_barrier"):
        yield kernel.source.replace(call, "pass")


def memory_reused(source: Source) -> Iterator[Edit]:
    """A tensor in the memory of an earlier one of its shape, or of an input."""
    sizes = Sizes(source)
    earlier = list(source.shapes)
    for name, call in allocations(source):
        for other in earlier:
            if sizes.shape_of(other) == sizes.shape_of(name) is not None and other != name:
                yield source.replace(call, other)
        earlier.append(name)


def launch_late(source: Source) -> Iterator[Edit]:
    """After the launch that follows it."""
    body = source.forward.body if source.forward else []
    places = [body.index(launch.statement) for launch in launches(source) if launch.statement in body]
    for first, second in pairwise(places):
        start, end = source.span(body[first])[0], source.span(body[second])[1]
        between = source.between(source.span(body[first + 1])[0], end)
        indent = " " * body[first].col_offset
        yield Edit(start, end, f"{between}\n{indent}{source.text(body[first])}")


OPERATORS = (
    Operator("store_for_atomic", Fault.SYNCHRONISATION, "a store for an atomic", in_kernels(store_for_atomic)),
    Operator("barrier_removed", Fault.SYNCHRONISATION, "no barrier", in_kernels(barrier_removed)),
    Operator("memory_reused", Fault.SYNCHRONISATION, "memory that is still in use", memory_reused),
    Operator("launch_late", Fault.SYNCHRONISATION, "two launches in the wrong order", launch_late),
)
