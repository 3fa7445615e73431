"""Keep one of the modules with equal source: the copy with the smallest source reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module


def keep_one(copies: Iterable[Outcome[Module]]) -> Iterator[Outcome[Module]]:
    """Keep the module with the smallest source reference among those with the same id, and drop the others."""
    kept: list[Module] = []
    for outcome in copies:
        if isinstance(outcome, Kept):
            kept.append(outcome.record)
        else:
            yield outcome
    for index, module in enumerate(sorted(kept, key=place_of)):
        yield Dropped(place_of(module), Reason.DUPLICATE_SOURCE, module.id) if index else Kept(module)


def place_of(module: Module) -> str:
    """Package, revision, path and class name."""
    source = module.source
    return f"{source.package}@{source.revision}/{source.path}:{module.name}"
