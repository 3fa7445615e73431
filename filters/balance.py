"""Caps on how many rows may have one thing in common, so that no package and no pattern is most of a dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields

from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair


@dataclass(frozen=True, slots=True)
class Caps:
    """The most rows of one cluster, with the same operators, and of one package or repository; asked in this order."""

    cluster: int = 50
    operators: int = 100
    repository: int = 5_000


CAPS = Caps()
NAMES = tuple(field.name for field in fields(Caps))
REASONS = dict(zip(NAMES, (Reason.OVER_CLUSTER, Reason.OVER_OPERATORS, Reason.OVER_REPOSITORY), strict=True))


@dataclass(frozen=True, slots=True)
class Keys:
    """What a row has in common with others."""

    id: str
    cluster: str
    operators: str  # digest
    repository: str


def keys_of(row: Pair) -> Keys:
    return Keys(row.id, row.cluster, sha256(canonical(list(row.operators)))[:16], row.source.package)


def cap(rows: Iterable[Keys], name: str, most: int) -> list[Keys | Dropped]:
    """Of rows that share the key `name`, `most` stay. Which ones follows from their ids alone."""
    ordered = sorted(rows, key=lambda row: sha256(row.id))
    evidence = f"{len(ordered)} rows of {name} {getattr(ordered[0], name)}, at most {most}"
    return [*ordered[:most], *(Dropped(row.id, REASONS[name], evidence) for row in ordered[most:])]


def over_caps(rows: Iterable[Pair], caps: Caps) -> list[Dropped]:
    """The rows that go. What one cap takes does not count for the next."""
    stay, over = [keys_of(row) for row in rows], list[Dropped]()
    for name in NAMES:
        groups: defaultdict[str, list[Keys]] = defaultdict(list)
        for row in stay:
            groups[getattr(row, name)].append(row)
        told = [end for group in groups.values() for end in cap(group, name, getattr(caps, name))]
        stay = [end for end in told if isinstance(end, Keys)]
        over += [end for end in told if isinstance(end, Dropped)]
    return sorted(over, key=lambda end: end.id)
