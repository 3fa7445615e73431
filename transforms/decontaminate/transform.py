"""Stage `decontaminate`: modules -> modules that overlap no problem of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

import apache_beam as beam

from kernelquarry.pipeline.runtime.multiprocess import OnAllCores
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.stage_transform import StageContext, StageTransform, report

from .benchmark_index import read_all
from .controls import BENCHMARK, PREFIX, check
from .ladder import DEFAULT, Hit, Ladder, Thresholds, render_hits
from .module_fingerprint import Fingerprint, fingerprint_all
from .plant import Controls, plant


class DecontaminateModules(StageTransform):
    """Modules -> an outcome for each: kept, or dropped with what each rung of the ladder found.

    Planted controls take the same path. Raises: ControlError: a rung overlooks one of them.
    """

    def __init__(self, indexes: tuple[Path, ...], sandbox: SandboxSettings, thresholds: Thresholds = DEFAULT) -> None:
        super().__init__()
        self._indexes, self._sandbox, self._thresholds = indexes, sandbox, thresholds

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        return cls(context.indexes, context.sandbox, context.settings.decontaminate)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        settings = {"decontaminate": canonical(asdict(context.settings.decontaminate))}
        return {path.name: digest(path) for path in context.indexes} | settings

    def expand(self, modules: beam.PCollection) -> beam.PCollection:
        controls = modules.pipeline | "Once" >> beam.Create([self._sandbox]) | "Plant" >> beam.Map(_plant)
        planted = controls | "Planted rows" >> beam.FlatMap(lambda controls: controls.rows)
        climbed = (
            (modules, planted)
            | "With planted" >> beam.Flatten()
            | "Batch" >> beam.BatchElements(64, 512)
            | "Fingerprint" >> beam.ParDo(OnAllCores(fingerprint_all))
            | "Climb" >> beam.ParDo(_Climb(self._indexes, self._thresholds), beam.pvalue.AsSingleton(controls))
        )
        _ = (
            climbed
            | "Of planted" >> beam.Filter(lambda found: found[0].id.startswith(PREFIX))
            | "Found planted" >> beam.Map(lambda found: (found[0].id.removeprefix(PREFIX), found[1]))
            | "All planted" >> beam.combiners.ToDict()
            | "Check" >> beam.Map(check)
        )
        outcomes = (
            climbed
            | "Of rows" >> beam.Filter(lambda found: not found[0].id.startswith(PREFIX))
            | "Outcome" >> beam.MapTuple(_uncontaminated)
        )
        return outcomes | "Report" >> beam.Map(lambda outcome: report("decontaminate", outcome))


def _plant(settings: SandboxSettings) -> Controls:
    with Sandbox(settings) as sandbox:
        return plant(sandbox)


class _Climb(beam.DoFn):
    """Adds to each module the hits that remove it, and labels it with the problems of its other hits.

    Each worker builds the ladder once.
    """

    def __init__(self, indexes: tuple[Path, ...], thresholds: Thresholds) -> None:
        self._indexes, self._thresholds = indexes, thresholds
        self._ladder: Ladder | None = None

    def process(
        self, found: tuple[Probed, Fingerprint], controls: Controls
    ) -> Iterator[tuple[Probed, tuple[Hit, ...]]]:
        if self._ladder is None:
            self._ladder = Ladder((*read_all(self._indexes)[1], *controls.problems), self._thresholds)
        module, fingerprint = found
        hits = self._ladder.climb(fingerprint)
        removing = tuple(hit for hit in hits if _is_planted(hit) or self._ladder.removes(hit))
        matched = {hit.problem for hit in hits if hit not in removing}
        yield replace(module, matched_problems=tuple(sorted(matched))), removing


def _uncontaminated(module: Probed, hits: tuple[Hit, ...]) -> Outcome[Probed]:
    found = [hit for hit in hits if not _is_planted(hit)]
    return Dropped(module.id, Reason.CONTAMINATED, render_hits(found)) if found else Kept(module)


def _is_planted(hit: Hit) -> bool:
    return hit.problem.startswith(f"{BENCHMARK}/")
