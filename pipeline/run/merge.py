"""Merge the work of several machines on one run: finished stages, and parts of stages.

A part's shards are divided as those of the whole stage, so merging the shards of equal names gives the bytes that one
machine would have written.

All machines must have the same code. Their Python and packages may differ, and one may execute kernels where another
interprets them: a row says where it was verified, and the manifest what made the stage.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.graph import Stage, before
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.runtime.funnel import ConservationError, StageCounts
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import read_bytes, replace_file
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Kept
from kernelquarry.pipeline.schema.parts import Part
from kernelquarry.transforms.mine.distinct import keep_one

from .build import StagePlan, plan_stage, shard_of
from .execute_stage import check, number_of, shard_name, write_sorted
from .run import Run
from .stage_directory import LOST, MANIFEST, StageDirectory

_logger = logging.getLogger(__name__)
_MOST = 10_000  # parts of a stage


@dataclass(frozen=True, slots=True)
class _Made:
    """A directory of shards with its manifest."""

    directory: StageDirectory
    manifest: StageManifest


def merge(run: Run, others: Sequence[Run]) -> tuple[StageManifest, ...]:
    """Take over unfinished stages from other run directories, and merge the parts of stages.

    Goes through the stages in order; a stage needs its input in this directory. Returns the manifests of stages that
    were taken over or merged.

    Raises:
        UserError: parts of a stage are missing or damaged, or nothing fits.
    """
    merged: list[StageManifest] = []
    unplanned: list[UserError] = []
    for stage in run.order:
        try:
            plan = plan_stage(run, stage)
        except UserError as why:  # a machine that runs one stage may have only that stage's input
            unplanned.append(why)
            continue
        if run.directory(stage).finished(plan.context.fingerprint.key, plan.inputs) is None:
            manifest = _bring(run, stage, plan, others)
            if manifest is not None:
                merged.append(manifest)
    if not merged:
        nothing = f"{run.root}: nothing to merge: no part and no other run directory has a stage that is not done"
        raise unplanned[0] if unplanned else UserError(nothing)
    return tuple(merged)


def _bring(run: Run, stage: Stage, plan: StagePlan, others: Sequence[Run]) -> StageManifest | None:
    whole = filter(None, (_made(other.directory(stage), plan) for other in others))
    if made := min(whole, key=_has_errors, default=None):
        manifest = replace(made.manifest, key=plan.context.fingerprint.key, merged=True)
        _write(run.directory(stage), manifest, (made.directory.path / name for name in made.manifest.outputs))
        return manifest
    parts = _parts(stage, plan, [run, *others])
    return _write_merged(run.directory(stage), stage, plan, parts) if parts else None


def _parts(stage: Stage, plan: StagePlan, runs: Sequence[Run]) -> list[_Made]:
    """All parts of the stage, in order; empty if there is no part. Raises: UserError: some parts are missing."""
    found: dict[tuple[int, str], dict[int, _Made]] = {}  # by their number, and what made them
    for run in runs:
        for path in sorted((run.root / "parts").glob(f"{run.directory(stage).path.name}.*-of-*")):
            number, of = (int(word) for word in path.name.rpartition(".")[2].split("-of-"))
            made = _made_part(run, stage, Part(number, of), plan, runs[0]) if 0 < number <= of <= _MOST else None
            if made is not None:
                parts = found.setdefault((of, made.manifest.key), {})
                parts[number] = min(parts.get(number, made), made, key=_has_errors)
    for (of, _), parts in sorted(found.items()):
        if len(parts) == of:
            return [parts[number] for number in sorted(parts)]
    if found:
        (of, _), parts = max(found.items(), key=lambda item: len(item[1]))
        missing = next(number for number in range(1, of + 1) if number not in parts)
        raise UserError(
            f"{stage.name}: {len(parts)} of {of} parts are here and fit: run `kernelquarry {stage.name} "
            f"--part {missing}/{of}` or name the run directory that has it"
        )
    return []


def _made_part(run: Run, stage: Stage, part: Part, plan: StagePlan, into: Run) -> _Made | None:
    """The part's contents, if made of the merged stage before, or of the same part of it, which then fits as well."""
    directory = run.part(stage, part)
    if (made := _made(directory, plan)) is not None or stage.input_type is None:
        return made
    earlier = before(stage)
    if not (run.part(earlier, part).path / MANIFEST).exists():
        return None
    fits = _made_part(run, earlier, part, plan_stage(into, earlier), into)
    return fits and _made(directory, plan_stage(run, stage, part, of_part=True))


def _made(directory: StageDirectory, plan: StagePlan) -> _Made | None:
    """The directory's contents, if they are whole and made by the same code from the same input."""
    manifest = StageManifest.read(directory.path / MANIFEST)
    if manifest is None or manifest.made_by is None or not manifest.made_by.agrees(plan.context.fingerprint):
        return None
    if manifest.inputs != plan.inputs or directory.unchanged(manifest) is None:
        return None
    if manifest.has_errors:
        _logger.warning(
            "%s: some records errored, and stay so once merged: run the part again to try them", directory.path
        )
    return _Made(directory, manifest)


def _has_errors(made: _Made) -> bool:
    return made.manifest.has_errors


def _write(into: StageDirectory, manifest: StageManifest, paths: Iterable[Path]) -> None:
    into.empty()
    for path in paths:
        with replace_file(into.path / path.name) as stream:
            stream.write(read_bytes(path))
    manifest.write(into.path / MANIFEST)


def _write_merged(into: StageDirectory, stage: Stage, plan: StagePlan, parts: list[_Made]) -> StageManifest:
    """Merge shard by shard. Raises: ConservationError: the parts do not add up to the whole."""
    into.empty()
    duplicates: list[DropRecord] = []
    number = plan.number_of_shards
    for index in range(number):
        shard = Part(index + 1, number)
        records = chain.from_iterable(_of_shard(part, shard, stage.output_type) for part in parts)
        kept, copies = _distinct(stage, records)
        duplicates += copies
        if kept:
            write_sorted(into.path / shard_name(index, number), kept, stage.output_type)
    losses = [*chain.from_iterable(_records(part, LOST, DropRecord) for part in parts), *duplicates]
    if losses:
        write_sorted(into.path / LOST, losses, DropRecord)
    manifests = [part.manifest for part in parts]
    manifest = StageManifest(
        stage=stage.name,
        key=plan.context.fingerprint.key,
        inputs=plan.inputs,
        outputs=into.digests(),
        counts=tuple(_sum(lines, stage, duplicates) for lines in zip(*(m.counts for m in manifests), strict=True)),
        seconds=round(sum(m.seconds for m in manifests), 2),
        core_s=round(sum(m.core_s for m in manifests), 2),
        gpu_s=round(sum(m.gpu_s for m in manifests), 2),
        made_by=manifests[0].made_by,
        merged=True,
    )
    check(stage.output_type, into, manifest)
    if plan.entered not in (None, manifest.counts[0].entered):
        raise ConservationError(f"{stage.name}: the parts hold {manifest.counts[0].entered} of {plan.entered}")
    manifest.write(into.path / MANIFEST)
    return manifest


def _records(part: _Made, name: str, kind: type) -> Iterator[Any]:
    return read_records(part.directory.path / name, kind) if name in part.manifest.outputs else iter(())


def _of_shard(part: _Made, shard: Part, kind: type) -> Iterator[Any]:
    """The part's records that belong to one shard of the whole; the part may have another number of shards."""
    for name in sorted(part.manifest.outputs.keys() - {LOST}):
        if shard.meets(*shard_of(name)):
            yield from (record for record in _records(part, name, kind) if shard.holds(number_of(record.id)))


def _distinct(stage: Stage, records: Iterable[Any]) -> tuple[list[Any], list[DropRecord]]:
    """The records, where of a module that several parts mined one copy stays, as if all had been mined at once.

    Copies have equal ids, and so are in the same shard.
    """
    if stage.name != "mine":
        return list(records), []
    by_id: dict[str, list[Any]] = {}
    for record in records:
        by_id.setdefault(record.id, []).append(Kept(record))
    outcomes = [outcome for copies in by_id.values() for outcome in keep_one(copies)]
    kept = [outcome.record for outcome in outcomes if isinstance(outcome, Kept)]
    return kept, [DropRecord.of(stage.name, outcome) for outcome in outcomes if isinstance(outcome, Dropped)]


def _sum(lines: Sequence[StageCounts], stage: Stage, duplicates: Sequence[DropRecord]) -> StageCounts:
    """Add up one line of the funnel; `duplicates` were kept by several parts, and are kept once in the whole."""
    dropped = sum((Counter(line.dropped) for line in lines), Counter[str]())
    errored = sum((Counter(line.errored) for line in lines), Counter[str]())
    entered, kept = sum(line.entered for line in lines), sum(line.kept for line in lines)
    if lines[0].stage == stage.name:
        kept -= len(duplicates)
        dropped.update(loss.reason for loss in duplicates)
    lost, failed = (dict(sorted(codes.items())) for codes in (dropped, errored))
    return replace(lines[0], entered=entered, kept=kept, dropped=lost, errored=failed)
