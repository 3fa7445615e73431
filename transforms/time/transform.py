"""Stage `time`: rows -> rows, a share of them with timings. It drops no row; without a GPU it adds nothing."""

from __future__ import annotations

import apache_beam as beam

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.ids import canonical, in_share
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import ApplyToEach, StageContext, report

from .time_pair import time


class TimePairs(ApplyToEach):
    work = Work("time", time, Pair, ExecutionMode.GUESTS, one_host=True)
    executes_kernels = True

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        return {"share": canonical(context.settings.time.share)}

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        share = self._context.settings.time.share
        timed, others = records | beam.Partition(lambda pair, _: int(not in_share("time", pair.id, share)), 2)
        kept = others | "Keep" >> beam.Map(lambda pair: report("time", Kept(pair)))
        return (super().expand(timed), kept) | beam.Flatten()
