"""Run one stage: shards in, shards and a manifest out."""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics, MetricsFilter

from kernelquarry.pipeline.runtime.apply import GPUS_BUSY
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint, StageManifest
from kernelquarry.pipeline.runtime.funnel import ConservationError, StageCounts
from kernelquarry.pipeline.schema.arrow import count_records, pack, read_records, unpack, write_shard
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import parse_path
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Errored, Kept, Outcome

from .beam_runner import WorkerDied, open_pipeline, run_pipeline
from .runner_options import DEFAULT
from .stage_directory import LOST, MANIFEST, StageDirectory

log = logging.getLogger(__name__)

NAMESPACE = "kernelquarry"
_SLICE = 50  # most records that a worker reads at once
_SLICES = 64  # least slices of a stage's input, where it has as many records: all cores of all workers share them
_ATTEMPTS = 5  # to run a stage whose workers die; each starts from the stored results


class WriteOutcomes(beam.PTransform):
    """PCollection of (line of the funnel, outcome) -> shards of kept records, and one of dropped and errored ones.

    A record's id decides its shard and its place in it, so neither depends on the runner.
    Beam counters: `<line>/kept`, `<line>/dropped/<reason>`, `<line>/errored/<exception>`.
    """

    def __init__(self, stage: str, kind: type, directory: Path, shards: int) -> None:
        super().__init__()
        self._stage, self._kind, self._directory, self._shards = stage, kind, directory, shards

    def expand(self, outcomes: beam.PCollection) -> beam.PCollection:
        return (
            outcomes
            | "To shards" >> beam.FlatMapTuple(self._place)
            | "One key a shard" >> beam.GroupByKey()
            | "Write" >> beam.MapTuple(self._write)
        )

    def _place(self, counted: str, outcome: Outcome[Any]) -> Iterator[tuple[str, bytes]]:
        Metrics.counter(NAMESPACE, "/".join((counted, *_counter_suffix(outcome)))).inc()
        if not isinstance(outcome, Kept):
            yield LOST, pack(DropRecord.of(counted, outcome))
        elif counted == self._stage:
            index = number_of(outcome.record.id) % self._shards
            yield shard_name(index, self._shards), pack(outcome.record)

    def _write(self, name: str, packed: Iterable[bytes]) -> None:
        kind = DropRecord if name == LOST else self._kind
        write_sorted(self._directory / name, (unpack(each, kind) for each in packed), kind)


def shard_name(index: int, number: int) -> str:
    return f"kept-{index:05d}-of-{number:05d}.parquet"


def number_of(id: str) -> int:
    """A hash of the id, evenly spread and equal on every machine, that decides a record's shard."""
    return int(sha256(id)[:8], 16)


def write_sorted(path: Path, records: Iterable[Any], kind: type) -> None:
    """Write a shard of kept records, or the shard of dropped and errored records, sorted."""
    if path.name == LOST:
        losses = sorted(records, key=lambda loss: (loss.stage, loss.id, loss.reason, loss.evidence))
        write_shard(path, losses, DropRecord)
    else:
        write_shard(path, sorted(records, key=lambda record: record.id), kind)


def _counter_suffix(outcome: Outcome[Any]) -> tuple[str, ...]:
    match outcome:
        case Kept():
            return ("kept",)
        case Dropped(reason=reason):
            return ("dropped", reason.value)
        case Errored(_, error, _):
            return ("errored", error)


@dataclass(frozen=True, slots=True)
class Counted:
    """One line of the funnel that a stage is accountable for."""

    stage: str
    unit: str  # "file", "class", "module", "pair"
    entered: int | None  # from the shards of the stage before; None where the stage itself finds its units


def execute(
    outcomes: Callable[[], beam.PTransform],
    *,
    stage: str,
    kind: type,
    made_by: Fingerprint,
    directory: StageDirectory,
    inputs: dict[str, str],
    counted: tuple[Counted, ...],
    shards: int,
    options: tuple[str, ...] = DEFAULT,
) -> StageManifest:
    """Run one stage and write its shards and manifest.

    `outcomes` returns a fresh transform that makes (line of the funnel, outcome) pairs. `options` are Beam's and name
    the runner (`runner_options`). If worker processes die, the stage runs again, up to five times.

    Raises:
        ConservationError: entered = kept + dropped + errored does not hold, or the shards hold another number.
        UserError: workers died each time.
    """
    started, used = time.monotonic(), core_seconds()
    for attempt in range(1, _ATTEMPTS + 1):
        directory.empty()
        pipeline = open_pipeline(options)
        _ = pipeline | outcomes() | "Outcomes" >> WriteOutcomes(stage, kind, directory.path, shards)
        try:
            result = _run(pipeline)
            break
        except WorkerDied:
            if attempt == _ATTEMPTS:
                raise UserError(
                    f"{stage}: worker processes died {attempt} times: find out what kills them (memory?)"
                ) from None
            log.warning("%s: a worker process died; the stage goes on from what is stored", stage)
    manifest = StageManifest(
        stage=stage,
        key=made_by.key,
        inputs=inputs,
        outputs=directory.digests(),
        counts=_counts(result, counted),
        seconds=round(time.monotonic() - started, 2),
        core_s=round(core_seconds() - used, 2),
        gpu_s=round(_gpu_seconds(result), 2),
        made_by=made_by,
    )
    check(kind, directory, manifest)
    manifest.write(directory.path / MANIFEST)
    return manifest


def core_seconds() -> float:
    """CPU seconds of this process and of its descendants that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def _run(pipeline: beam.Pipeline) -> Any:
    """Run to the end. An error that the user can mend is raised as it was: Beam wraps it in a RuntimeError."""
    try:
        return run_pipeline(pipeline)
    except Exception as error:
        chain = list(_chain(error))
        for kind in (KeyboardInterrupt, UserError, OSError):
            if found := [e for e in chain if isinstance(e, kind)]:
                raise found[-1] from None
        raise


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and its causes, the first cause last."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _gpu_seconds(result: Any) -> float:
    counters = result.metrics().query(MetricsFilter().with_namespace(GPUS_BUSY))["counters"]
    return float(sum(counter.result for counter in counters)) / 1000


def _counts(result: Any, counted: tuple[Counted, ...]) -> tuple[StageCounts, ...]:
    query = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    seen = {counter.key.metric.name: counter.result for counter in query["counters"]}

    def by_code(stage: str, end: str) -> dict[str, int]:
        prefix = f"{stage}/{end}/"
        return {name.removeprefix(prefix): n for name, n in sorted(seen.items()) if name.startswith(prefix)}

    rows = []
    for line in counted:
        kept = seen.get(f"{line.stage}/kept", 0)
        dropped, errored = by_code(line.stage, "dropped"), by_code(line.stage, "errored")
        entered = kept + sum(dropped.values()) + sum(errored.values()) if line.entered is None else line.entered
        rows.append(StageCounts(line.stage, line.unit, entered, kept, dropped, errored))
    return tuple(rows)


def check(kind: type, directory: StageDirectory, manifest: StageManifest) -> None:
    """Raises: ConservationError if a record is unaccounted for."""
    for count in manifest.counts:
        count.check()
    (kept,) = (count.kept for count in manifest.counts if count.stage == manifest.stage)
    lost = sum(count.total_dropped + count.total_errored for count in manifest.counts)
    in_shards = sum(count_records(path, kind) for path in directory.kept)
    in_lost = count_records(directory.lost, DropRecord) if directory.lost.exists() else 0
    if (in_shards, in_lost) != (kept, lost):
        raise ConservationError(
            f"{manifest.stage}: counted {kept} kept and {lost} lost, but the shards hold {in_shards} and {in_lost}"
        )


def tag_as(stage: str) -> beam.PTransform:
    """Pair each outcome with the line of the funnel that counts it."""
    return "Tag" >> beam.Map(lambda outcome: (stage, outcome))


def read_shards(paths: list[Path], kind: type) -> beam.PTransform:
    """The records of the shards, spread over the workers.

    What is spread are places to read at: a runner may hold all that a worker is to get, and hand it over at once.
    Raises: SchemaError, FileNotFoundError.
    """
    held = [(str(path), count_records(path, kind)) for path in paths]
    length = min(_SLICE, max(1, sum(number for _, number in held) // _SLICES))
    slices = [(path, start, start + length) for path, number in held for start in range(0, number, length)]
    return beam.Create(slices) | beam.FlatMapTuple(lambda path, *span: read_records(parse_path(path), kind, *span))
