"""Stage `balance`: rows -> at most so many of one cluster, with the same operators, and of one package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Self

import apache_beam as beam

from kernelquarry.filters.balance import NAMES, Caps, Keys, cap, keys_of
from kernelquarry.pipeline.schema.arrow import pack, unpack
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import StageContext, StageTransform, report


class BalancePairs(StageTransform):
    """Pairs -> an outcome for each: kept, or dropped as one too many of what it has in common with others.

    What is grouped, three times, are ids and keys; the pairs wait until it is known which ones go.
    """

    needs_all_records = True

    def __init__(self, caps: Caps) -> None:
        super().__init__()
        self._caps = caps

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        return cls(context.caps)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        return {"caps": canonical(asdict(context.caps))}

    def expand(self, pairs: beam.PCollection) -> beam.PCollection:
        rows, dropped = pairs | "Keys" >> beam.Map(keys_of), []
        for name in NAMES:
            capped = (
                rows
                | f"By {name}" >> beam.Map(lambda row, name: (getattr(row, name), row), name)
                | f"Of one {name}" >> beam.GroupByKey()
                | f"Cap {name}"
                >> beam.FlatMap(lambda group, name, most: cap(group[1], name, most), name, getattr(self._caps, name))
            )
            rows = capped | f"Within {name}" >> beam.Filter(lambda end: isinstance(end, Keys))
            dropped.append(capped | f"Over {name}" >> beam.Filter(lambda end: isinstance(end, Dropped)))
        over = dropped | "Dropped" >> beam.Flatten() | "By dropped id" >> beam.Map(lambda end: (end.id, end))
        outcomes = (
            {"pairs": pairs | "By id" >> beam.Map(lambda pair: (pair.id, pack(pair))), "over": over}
            | "With dropped" >> beam.CoGroupByKey()
            | "Outcome" >> beam.FlatMapTuple(lambda _, found: _balanced(found["pairs"], found["over"]))
        )
        return outcomes | "Report" >> beam.Map(lambda outcome: report("balance", outcome))


def _balanced(pairs: Iterable[bytes], over: Iterable[Dropped]) -> list[Outcome[Pair]]:
    return [*over] or [Kept(unpack(pair, Pair)) for pair in pairs]
