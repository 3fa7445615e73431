"""Stage `lower`: probed modules -> Inductor's Triton source."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import apache_beam as beam

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.records import Lowered
from kernelquarry.transforms.stage_transform import ApplyToEach, StageContext, apply_work

from .lower_module import lower


class LowerModules(ApplyToEach):
    work = Work("lower", lower, Lowered, ExecutionMode.GUESTS, jobs=("lower",))

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        return {"constructor_sizes": canonical(context.settings.lower.constructor_sizes)}

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        if not self._context.settings.lower.constructor_sizes:
            return super().expand(records)
        work = replace(self.work, function=partial(lower, constructor_sizes=True))
        # Other sources have another folder: a key of the store does not cover settings.
        context = replace(self._context, store=self._context.store / "constructor-sizes")
        return records | apply_work(work, context) | "Tag" >> beam.Map(lambda outcome: ("lower", outcome))
