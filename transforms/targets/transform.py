"""Stage `targets`: rows -> rows that were compiled for further GPU architectures, if the settings name some."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import apache_beam as beam

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.sandbox.jobs.codegen import CODEGEN
from kernelquarry.pipeline.sandbox.jobs.compile import COMPILE
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import ApplyToEach, StageContext, apply_work

from .compile_pair import compile_pair


def keep(pair: Pair) -> Outcome[Pair]:
    """Keep the pair as it is."""
    return Kept(pair)


class CompileForTargets(ApplyToEach):
    work = Work("targets", keep, Pair, ExecutionMode.INLINE)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        return {"targets": canonical(context.settings.targets.names or ())}

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        names = self._context.settings.targets.names
        if not names:
            return super().expand(records)
        work = Work(
            "targets",
            partial(compile_pair, targets=names),
            Pair,
            ExecutionMode.GUESTS,
            jobs=(COMPILE.name, CODEGEN.name),
        )
        # Results for other targets have other folders: a key of the store does not cover settings.
        context = replace(self._context, store=self._context.store / f"for-{'-'.join(names)}")
        return records | apply_work(work, context) | "Tag" >> beam.Map(lambda outcome: ("targets", outcome))
