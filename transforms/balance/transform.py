"""Stage `balance`: modules -> at most so many of one cluster, with the same operators, and of one package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Self

import apache_beam as beam

from kernelquarry.filters.balance import NAMES, Caps, Keys, cap, keys_of
from kernelquarry.pipeline.schema.arrow import pack, unpack
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.stage_transform import StageContext, StageTransform, report


class BalanceModules(StageTransform):
    """Modules -> an outcome for each: kept, or dropped as one too many of what it has in common with others.

    What is grouped, three times, are ids and keys; the modules wait until it is known which ones go.
    """

    needs_all_records = True

    def __init__(self, caps: Caps) -> None:
        super().__init__()
        self._caps = caps

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        return cls(context.settings.caps)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        return {"caps": canonical(asdict(context.settings.caps))}

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        rest, dropped = modules | "Keys" >> beam.Map(keys_of), []
        for name in NAMES:
            capped = (
                rest
                | f"By {name}" >> beam.Map(lambda keys, name: (getattr(keys, name), keys), name)
                | f"Of one {name}" >> beam.GroupByKey()
                | f"Cap {name}"
                >> beam.FlatMap(lambda group, name, most: cap(group[1], name, most), name, getattr(self._caps, name))
            )
            rest = capped | f"Within {name}" >> beam.Filter(lambda end: isinstance(end, Keys))
            dropped.append(capped | f"Over {name}" >> beam.Filter(lambda end: isinstance(end, Dropped)))
        over = dropped | "Dropped" >> beam.Flatten() | "By dropped id" >> beam.Map(lambda end: (end.id, end))
        outcomes = (
            {"modules": modules | "By id" >> beam.Map(lambda module: (module.id, pack(module))), "over": over}
            | "With dropped" >> beam.CoGroupByKey()
            | "Outcome" >> beam.FlatMapTuple(lambda _, found: _balanced(found["modules"], found["over"]))
        )
        return outcomes | "Report" >> beam.Map(lambda outcome: report("balance", outcome))


def _balanced(modules: Iterable[bytes], over: Iterable[Dropped]) -> list[Outcome[Probed]]:
    return [*over] or [Kept(unpack(module, Probed)) for module in modules]
