"""Stage `lower`: probed modules -> Inductor's Triton source."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

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
        return {name: canonical(value) for name, value in asdict(context.settings.lower).items()}

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        chosen: dict[str, Any] = {name: on for name, on in asdict(self._context.settings.lower).items() if on}
        if not chosen:
            return super().expand(records)
        work = replace(self.work, function=partial(lower, **chosen))
        # Other sources have another folder: a key of the store does not cover settings.
        context = replace(self._context, store=self._context.store / "-".join(chosen).replace("_", "-"))
        return records | apply_work(work, context) | "Tag" >> beam.Map(lambda outcome: ("lower", outcome))
