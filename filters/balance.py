"""Caps on the number of rows that share a property, so that no package and no pattern dominates a dataset."""

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
    """Maximum numbers of rows per cluster, set of operators, and package or repository, applied in this order."""

    cluster: int = 50  # rows of one cluster of similar modules
    operators: int = 100  # rows with the same set of operators
    repository: int = 5_000  # rows of one package or repository


CAPS = Caps()
NAMES = tuple(field.name for field in fields(Caps))
REASONS = dict(zip(NAMES, (Reason.OVER_CLUSTER, Reason.OVER_OPERATORS, Reason.OVER_REPOSITORY), strict=True))


@dataclass(frozen=True, slots=True)
class Keys:
    """Properties that rows may share."""

    id: str
    cluster: str
    operators: str  # digest of their names
    repository: str


def keys_of(row: Pair) -> Keys:
    """The properties of a row. Slices are counted apart from modules, so that they displace none."""
    apart = ["slices"] if row.slice_of else []
    operators = sha256(canonical([*row.operators, *apart]))[:16]
    return Keys(row.id, " ".join([row.cluster, *apart]), operators, row.source.package)


def cap(rows: Iterable[Keys], name: str, most: int) -> list[Keys | Dropped]:
    """Keep at most `most` of the rows that share the property `name`, chosen by their ids alone."""
    ordered = sorted(rows, key=lambda row: sha256(row.id))
    evidence = f"{len(ordered)} rows of {name} {getattr(ordered[0], name)}, at most {most}"
    return [*ordered[:most], *(Dropped(row.id, REASONS[name], evidence) for row in ordered[most:])]


def over_caps(rows: Iterable[Pair], caps: Caps) -> list[Dropped]:
    """List the rows over a cap. Rows dropped by one cap do not count for the next."""
    kept, over = [keys_of(row) for row in rows], list[Dropped]()
    for name in NAMES:
        groups: defaultdict[str, list[Keys]] = defaultdict(list)
        for row in kept:
            groups[getattr(row, name)].append(row)
        capped = [result for group in groups.values() for result in cap(group, name, getattr(caps, name))]
        kept = [result for result in capped if isinstance(result, Keys)]
        over += [result for result in capped if isinstance(result, Dropped)]
    return sorted(over, key=lambda dropped: dropped.id)
