"""Stage `distill`: verified kernels -> themselves, and the verified kernels that models wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import apache_beam as beam

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.distill_result import DistillResult
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Verified
from kernelquarry.transforms.stage_transform import Counted, StageContext, StageTransform, apply_work, report

from .batch import BatchWriter
from .client import Client
from .distill_module import TeacherSession, distill
from .teachers import DistillConfig


class DistillKernels(StageTransform):
    """Add models' explanations to verified kernels, and add an outcome for each answer (line "distill").

    `teach` makes a `DistillResult` of each module (line "teach"); without `teach`, kernels pass unchanged. A kernel is
    kept even if all answers for its module fail. Models also get those of `modules` that have no verified kernel.
    """

    executes_kernels = True
    calls_models = True
    store_name = "teach"

    def __init__(self, teach: beam.PTransform | None = None, modules: beam.PTransform | None = None) -> None:
        super().__init__()
        self._teach, self._modules = teach, modules

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        if context.distill is None:
            return cls()
        service = partial(open_session, context.distill, context.answers, context.batch)
        work = Work("teach", distill, DistillResult, ExecutionMode.GUESTS, (), service, context.distill.modules)
        return cls(apply_work(work, context), context.extra_records)

    def expand(self, seeds: beam.PCollection) -> beam.PCollection:
        keyed = seeds | "By module" >> beam.Map(lambda seed: (seed.id, seed))
        if self._teach is None:
            results = keyed | "No results" >> beam.MapTuple(lambda id, _: (id, report("teach", _no_result(id))[1]))
        else:
            inputs = seeds if self._modules is None else (seeds, _bare(self._modules, keyed)) | "All" >> beam.Flatten()
            results = inputs | self._teach | "Results" >> beam.Map(lambda outcome: (outcome.id, outcome))
        joined = {"seeds": keyed, "results": results} | "Join" >> beam.CoGroupByKey()
        split = joined | "Split" >> beam.FlatMapTuple(
            lambda _, found: split_distill_result(found["seeds"], *found["results"])
        )
        return split | "Report" >> beam.MapTuple(
            lambda line, outcome: (line, outcome) if line == "teach" else report(line, outcome)
        )


def _bare(modules: beam.PTransform, seeds: beam.PCollection) -> beam.PCollection:
    """The modules without a verified kernel."""
    keyed = seeds.pipeline | "Modules" >> modules | "Modules by id" >> beam.Map(lambda module: (module.id, module))
    return (
        {"module": keyed, "seed": seeds}
        | "With their kernels" >> beam.CoGroupByKey()
        | "Without" >> beam.FlatMapTuple(lambda _, found: () if list(found["seed"]) else found["module"])
    )


def _no_result(id: str) -> Outcome[DistillResult]:
    return Kept(DistillResult(id, (), ()))


def split_distill_result(seeds: Iterable[Verified], result: Outcome[DistillResult]) -> Iterator[Counted]:
    """Count one module's result, its verified kernel (`seeds`, or none) and each answer on their lines."""
    yield "teach", result
    if not isinstance(result, Kept):
        yield from (("distill", Kept(seed)) for seed in seeds)
        return
    yield from (("distill", Kept(replace(seed, explanations=result.record.explanations))) for seed in seeds)
    for attempt in result.record.attempts:
        yield from (("distill", Kept(verified)) for verified in attempt.verified)
        yield from (("distill", loss.outcome) for loss in attempt.lost)


@contextmanager
def open_session(config: DistillConfig, answers: Path, batch: Path | None) -> Iterator[TeacherSession]:
    """A client of the run's teachers, or a writer of their questions where `batch` names a folder."""
    if batch is not None:
        with BatchWriter(answers, batch) as writer:
            yield TeacherSession(config, writer)
    else:
        with Client(config, answers) as client:
            yield TeacherSession(config, client)
