"""Build a run: bring each stage up to date, then write the products."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import apache_beam as beam

from kernelquarry.pipeline.graph import SLICE, SLICES, STAGES, Stage, before, named
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import remove_tree
from kernelquarry.pipeline.schema.parts import Part
from kernelquarry.transforms.stage_transform import StageContext, StageTransform

from .execute_stage import Counted, execute, number_of, read_shards
from .products import Products, rejected, write_products, write_report
from .run import Run
from .stage_directory import LOST, MANIFEST
from .why import explain_empty_stage

log = logging.getLogger(__name__)

RECORDS_PER_SHARD = 1000
Watch = Callable[[Mapping[str, int | None]], AbstractContextManager[None]]  # lines of the funnel and their totals


@dataclass(frozen=True, slots=True)
class Built:
    """A finished run."""

    products: Products
    ran: tuple[str, ...]  # stages that had something to do

    def summary(self) -> str:
        did = f"ran {', '.join(self.ran)}" if self.ran else "nothing to do"
        return self.products.summary(did)


def build(run: Run, watch: Watch, extra: Collection[Stage] = ()) -> Built:
    """Bring every stage up to date, and the `extra` ones, then write dataset and report anew.

    A run that has once made rows with gradients, or variants, makes them from then on. Writing takes seconds and gives
    the same bytes, so damaged products mend themselves.

    Raises: UserError: a stage kept nothing, or cannot run; ConservationError.
    """
    stages = [stage for stage in run.order if stage in (*STAGES, SLICE, *extra) or run.manifest(stage) is not None]
    ran = []
    for stage in stages:
        manifest, had_work = run_stage(run, stage, watch)
        if had_work:
            ran.append(stage.name)
        if not manifest.counts[-1].kept and stage in STAGES and not _models_write_from_scratch(run, stage):
            _stop(run, stage, manifest)
    return Built(write_products(run), tuple(ran))


def _models_write_from_scratch(run: Run, stage: Stage) -> bool:
    """True for the stages that make the compiler's kernels, if the run also has kernels that need none of these."""
    has_write_route = run.distill is not None and run.distill.has_write_route
    return has_write_route and stage in STAGES[STAGES.index(named("lower")) : STAGES.index(named("distill"))]


def _stop(run: Run, stage: Stage, manifest: StageManifest) -> NoReturn:
    """Stop after a stage that kept nothing, and remove what an earlier build left of the later stages."""
    for later in run.order[run.order.index(stage) + 1 :]:
        remove_tree(run.directory(later).path)
    write_report(run, [], rejected(run).rows)
    lines, message = explain_empty_stage(run.root, stage, manifest)
    for line in lines:
        log.warning("%s", line)
    raise UserError(message)


def run_stage(run: Run, stage: Stage, watch: Watch, part: Part | None = None) -> tuple[StageManifest, bool]:
    """Bring one stage up to date, or a part of it. Returns its manifest, and True if there was something to do."""
    if part is not None and stage.load().needs_all_records:
        raise UserError(f"{stage.name} looks at all records at once: it has no parts")
    plan = plan_stage(run, stage, part)
    directory = run.directory(stage) if part is None else run.part(stage, part)
    finished = directory.finished(plan.context.fingerprint.key, plan.inputs)
    if finished is not None:
        return finished, False
    entered = plan.entered if part is None else None
    first, *rest = stage.counted
    with watch({first[0]: entered} | {line: None for line, _ in rest}):
        manifest = execute(
            plan.transform,
            stage=stage.name,
            kind=stage.output_type,
            made_by=plan.context.fingerprint,
            directory=directory,
            inputs=plan.inputs,
            # The shards of the stage before say how many units enter the first line; later lines find their own.
            counted=(Counted(*first, entered), *(Counted(*line, None) for line in rest)),
            shards=plan.number_of_shards,
            options=run.options,
        )
    return manifest, True


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All that decides a stage's results: context, input digests, shards."""

    stage: Stage
    context: StageContext
    inputs: dict[str, str]  # shard of the stage before, source or setting -> digest
    shards: tuple[Path, ...]  # to read
    extra_shards: tuple[Path, ...]  # of the stage's `extra_input`
    entered: int | None  # records that the first line of the funnel counts; None for the first stage
    of_part: bool = False  # the shards are those of the same part of the stage before; all their records are read

    @property
    def number_of_shards(self) -> int:
        """How many shards the stage writes; parts write shards of the same names, so that they can be merged."""
        if self.of_part:
            return max((shard_of(path.name)[1] for path in self.shards), default=1)
        return max(1, math.ceil((self.entered or 1) / RECORDS_PER_SHARD))

    def transform(self) -> beam.PTransform:
        """The transform that makes (line of the funnel, outcome) pairs of the plan's shards."""
        load, context = self.stage.load(), self.context
        if self.stage.input_type is None:
            return load.from_context(context)
        if self.extra_shards:
            context = replace(context, extra_records=self._records(self.extra_shards, named(self.stage.extra_input)))
        return self._records(self.shards, before(self.stage)) | load.from_context(context)

    def _records(self, shards: Iterable[Path], earlier: Stage) -> beam.PTransform:
        """The records of an earlier stage that are in the plan's part."""
        records, part = read_shards(list(shards), earlier.output_type), self.context.part
        if part is None or self.of_part:
            return records
        return records | "Part" >> beam.Filter(_is_in_part, part, self.stage.load().partition_key)


def plan_stage(run: Run, stage: Stage, part: Part | None = None, of_part: bool | None = None) -> StagePlan:
    """Plan a stage.

    A part reads the stage before if that has run, else the same part of it. Only the shards that may hold records of
    the part need to be there.

    Args:
        of_part: read the same part of the stage before, whether that has run or not.

    Raises:
        UserError: the stage before has not run, its shards changed since it wrote them, or the run has no slices.
    """
    if stage is SLICE and not run.has_slices:
        raise UserError(f"{run.root} has no slices: start a run of the corpus {run.source}{SLICES} with another --out")
    context = run.context(stage, part)
    extra_digests = stage.load().extra_digests(context)
    if stage.input_type is None:
        return StagePlan(stage, context, extra_digests, (), (), None)
    earlier = before(stage)
    if of_part is None:
        of_part = (
            part is not None and run.manifest(earlier) is None and (run.part(earlier, part).path / MANIFEST).exists()
        )
    by_id = stage.load().partition_key is StageTransform.partition_key
    inputs, shards, entered = _outputs(run, earlier, part if by_id or of_part else None, of_part)
    extra: tuple[Path, ...] = ()
    if stage.extra_input and run.has_extra(stage):
        digests, extra, number = _outputs(run, named(stage.extra_input))
        entered = entered + number if stage.extra_input == SLICE.name else number
        inputs |= {f"{stage.extra_input}/{name}": sha256 for name, sha256 in digests.items()}
    return StagePlan(stage, context, inputs | extra_digests, shards, extra, entered, of_part)


def _outputs(
    run: Run, stage: Stage, part: Part | None = None, of_part: bool = False
) -> tuple[dict[str, str], tuple[Path, ...], int]:
    """Digests of a finished stage's shards, the paths of those that a part needs, and how many records all hold.

    Raises: UserError.
    """
    directory = run.part(stage, part) if part is not None and of_part else run.directory(stage)
    manifest = StageManifest.read(directory.path / MANIFEST)
    again = f"run `kernelquarry {stage.name} {run.root}` first"
    if manifest is None:
        raise UserError(f"{run.root}: the stage {stage.name} has not run yet: {again}")
    digests = {name: sha256 for name, sha256 in manifest.outputs.items() if name != LOST}
    needed = sorted(name for name in digests if of_part or part is None or part.meets(*shard_of(name)))
    if changed := directory.changed(manifest, needed if part is not None else None):
        raise UserError(f"{changed}: missing or changed since it was written: {again}")
    return digests, tuple(directory.path / name for name in needed), manifest.counts[-1].kept


def shard_of(name: str) -> tuple[int, int]:
    """(index, number) of a shard such as `kept-00002-of-00009.parquet`."""
    _, index, _, number = name.removesuffix(".parquet").split("-")
    return int(index), int(number)


def _is_in_part(record: Any, part: Part, partition_key: Callable[[Any], str]) -> bool:
    return part.holds(number_of(partition_key(record)))
