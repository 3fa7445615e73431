"""Caps on the number of modules that share a property, so that no package and no pattern dominates a dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields

from pydantic import NonNegativeInt

from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair, Probed


@dataclass(frozen=True, slots=True)
class Caps:
    """Maximum numbers of modules per cluster, set of operators, and package or repository, applied in this order."""

    cluster: NonNegativeInt = 50  # modules of one cluster of similar ones
    operators: NonNegativeInt = 100  # modules with the same set of operators
    repository: NonNegativeInt = 5_000  # modules of one package or repository


CAPS = Caps()
NAMES = tuple(field.name for field in fields(Caps))
REASONS = dict(zip(NAMES, (Reason.OVER_CLUSTER, Reason.OVER_OPERATORS, Reason.OVER_REPOSITORY), strict=True))


@dataclass(frozen=True, slots=True)
class Keys:
    """Properties that modules may share."""

    id: str
    cluster: str
    operators: str  # digest of their names
    repository: str


def keys_of(record: Probed | Pair) -> Keys:
    """The properties of a module or a row. Slices are counted apart from modules, so that they displace none."""
    module = record.module if isinstance(record, Probed) else record
    apart = ["slices"] if module.slice_of else []
    operators = sha256(canonical([*record.operators, *apart]))[:16]
    return Keys(record.id, " ".join([record.cluster, *apart]), operators, module.source.package)


def cap(group: Iterable[Keys], name: str, most: int) -> list[Keys | Dropped]:
    """Keep at most `most` of a group that shares the property `name`, chosen by their ids alone."""
    ordered = sorted(group, key=lambda keys: sha256(keys.id))
    evidence = f"{len(ordered)} of {name} {getattr(ordered[0], name)}, at most {most}"
    return [*ordered[:most], *(Dropped(keys.id, REASONS[name], evidence) for keys in ordered[most:])]


def over_caps(records: Iterable[Probed | Pair], caps: Caps) -> list[Dropped]:
    """List what the caps drop. What one cap drops does not count for the next."""
    kept, over = [keys_of(record) for record in records], list[Dropped]()
    for name in NAMES:
        groups: defaultdict[str, list[Keys]] = defaultdict(list)
        for keys in kept:
            groups[getattr(keys, name)].append(keys)
        capped = [result for group in groups.values() for result in cap(group, name, getattr(caps, name))]
        kept = [result for result in capped if isinstance(result, Keys)]
        over += [result for result in capped if isinstance(result, Dropped)]
    return sorted(over, key=lambda dropped: dropped.id)
