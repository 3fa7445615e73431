"""Missing synchronisation, and buffers that are reused too early."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .host_side import Sizes, allocations, launches
from .operator import Fault, kernel_operator, source_operator
from .source_edits import Edit, Kernel, Source


@kernel_operator(Fault.SYNCHRONISATION, "a store for an atomic")
def store_for_atomic(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("atomic_add", "atomic_max", "atomic_min"):
        kept = [part for part in call.keywords if part.arg == "mask"]
        parts = [kernel.source.text(part) for part in (*call.args[:3], *kept)]
        yield kernel.source.replace(call, f"tl.store({', '.join(parts)})")


@kernel_operator(Fault.SYNCHRONISATION, "no barrier")
def barrier_removed(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("debug_barrier"):
        yield kernel.source.replace(call, "pass")


@source_operator(Fault.SYNCHRONISATION, "memory that is still in use")
def memory_reused(source: Source) -> Iterator[Edit]:
    """Replace an allocation by an earlier buffer, or an input, of the same shape."""
    sizes = Sizes(source)
    earlier = list(source.shapes)
    for name, call in allocations(source):
        for other in earlier:
            if sizes.shape_of(other) == sizes.shape_of(name) is not None and other != name:
                yield source.replace(call, other)
        earlier.append(name)


@source_operator(Fault.SYNCHRONISATION, "two launches in the wrong order")
def launch_late(source: Source) -> Iterator[Edit]:
    """Move a launch behind the launch that follows it."""
    body = source.forward.body if source.forward else []
    places = [body.index(launch.statement) for launch in launches(source) if launch.statement in body]
    for first, second in pairwise(places):
        start, end = source.span(body[first])[0], source.span(body[second])[1]
        between = source.between(source.span(body[first + 1])[0], end)
        indent = " " * body[first].col_offset
        yield Edit(start, end, f"{between}\n{indent}{source.text(body[first])}")
