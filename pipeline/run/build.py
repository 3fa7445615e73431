"""Builds a run directory: each stage that is not done yet, in order.

out/tiny/run.json                          the corpus that it was started with
         opt-out.txt                       whose code it must not hold, where that was given
         settings.json                     thresholds and caps, where they were given
         stages/03-probe/kept-*.parquet    records that go on
                         lost.parquet      what was dropped or errored, and why
                         stage.json        manifest, written last
         parts/03-probe.2-of-4/            the same of a part of a stage's records, until parts are merged
         store/                            results of expensive work, by content
         dataset/                          what is published
         report.html
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam

from kernelquarry.filters.optout import OptOut, read_opt_out
from kernelquarry.pipeline.dataset.configs import Published
from kernelquarry.pipeline.dataset.contaminated import contaminated, describe
from kernelquarry.pipeline.dataset.rejected import Rejected, reject
from kernelquarry.pipeline.dataset.teacher_stats import Acceptance, acceptance
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.graph import ALL, BACKWARD, DISTILL, STAGES, VARIANTS, Stage, before, named
from kernelquarry.pipeline.report.report import render_report
from kernelquarry.pipeline.runtime.apply import ApplyStage, Workplace
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint, StageManifest
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest, read_bytes, replace_file
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.parts import Part
from kernelquarry.pipeline.schema.records import Candidate, Contamination, Pair, Probed, Verified
from kernelquarry.transforms.decontaminate import read_index, shipped
from kernelquarry.transforms.distill import mark
from kernelquarry.transforms.read import Corpus, open_corpus

from .beam_runner import DEFAULT, accelerator
from .execute_stage import LOST, MANIFEST, Counted, StageDirectory, execute, number_of, read_shards, tag_as
from .run_settings import Settings, remembered

log = logging.getLogger(__name__)

RECORDS_PER_SHARD = 1000
OPT_OUT = "opt-out.txt"
BENCHMARKS = "benchmarks"  # folder of indexes, inside the cache
Watch = Callable[[str, int | None], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Run:
    """A run directory and what its stages share."""

    root: Path
    source: str  # what the corpus is made of: its name, or the path of a folder or file
    cache: Path  # where downloads are kept
    workplace: Workplace
    options: tuple[str, ...] = DEFAULT  # Beam's, which name the runner

    @property
    def corpus(self) -> Corpus:
        """Opened when it is asked for: a run directory may be looked at where its corpus is not. Raises: UserError."""
        return open_corpus(self.source, self.cache)

    @property
    def opt_out(self) -> OptOut:
        """Who is left out: the shipped list, with the one that the run was given. Raises: UserError."""
        given = self.root / OPT_OUT
        return read_opt_out(given if given.exists() else None)

    @property
    def settings(self) -> Settings:
        """Raises: UserError."""
        return remembered(self.root)

    @property
    def indexes(self) -> tuple[Path, ...]:
        """Of the benchmarks that rows are compared with."""
        return tuple(shipped(self.cache / BENCHMARKS))

    def directory(self, stage: Stage) -> StageDirectory:
        return StageDirectory(self.root / "stages" / f"{ALL.index(stage) + 1:02d}-{stage.name}")

    def part(self, stage: Stage, part: Part) -> StageDirectory:
        return StageDirectory(self.root / "parts" / f"{self.directory(stage).path.name}.{part}")

    def manifest(self, stage: Stage) -> StageManifest | None:
        return StageManifest.read(self.directory(stage).path / MANIFEST)


@dataclass(frozen=True, slots=True)
class Built:
    """A finished run: where its products lie and what is in them."""

    dataset: Path
    report: Path
    rows: dict[str, int]  # split -> number
    funnel: tuple[StageCounts, ...]
    ran: tuple[str, ...]  # stages that had something to do
    benchmarks: tuple[str, ...]  # that modules were compared with

    def summary(self) -> str:
        mined = next(count for count in self.funnel if count.stage == "mine")
        splits = ", ".join(f"{n:,} {split}" for split, n in self.rows.items())
        did = f"ran {', '.join(self.ran)}" if self.ran else "nothing to do"
        return (
            f"{sum(self.rows.values()):,} verified pairs ({splits}) of {mined.kept:,} modules mined; {did}\n"
            f"  against  {'; '.join(self.benchmarks) or 'no benchmark: see kernelquarry index-benchmarks'}\n"
            f"  dataset  {self.dataset}    load_dataset({str(self.dataset)!r}, 'pairs')\n"
            f"  report   {self.report}"
        )


def build(run: Run, watch: Watch, beside: Collection[Stage] = ()) -> Built:
    """Bring every stage up to date, and those `beside` them, then write the dataset and the report anew.

    A run that had rows with gradients once, or variants, has them from then on. Writing takes seconds and gives the
    same bytes, so whatever happened to the products mends itself.

    Raises: UserError, ConservationError.
    """
    stages = [stage for stage in ALL if stage in (*STAGES, *beside) or run.manifest(stage) is not None]
    ran = tuple(stage.name for stage in stages if run_stage(run, stage, watch)[1])
    funnel, last = counts(run), STAGES[-1]
    pairs = mark(pair for path in run.directory(last).kept for pair in read_records(path, Pair))
    corpus, dataset, report = run.corpus, run.root / "dataset", run.root / "report.html"
    compared = tuple(asdict(read_index(path)[0]) for path in run.indexes)
    against = tuple(describe(compared))
    # first: it tells why there are no pairs
    with replace_file(report) as stream:
        stream.write(render_report(corpus.name, pairs, funnel, lost(run), taught(run), against).encode())
    made_of = Build(corpus.name, corpus.digests(), run.opt_out.digest, compared, asdict(run.settings))
    others: dict[str, Sequence[Published]] = {
        "backward": published(run, BACKWARD),
        "variants": [row for stage in VARIANTS for row in published(run, stage)],
        "contaminated": overlapping(run),
    }
    manifest = write_dataset(dataset, pairs, rejected(run), funnel, made_of, others)
    return Built(dataset, report, manifest.rows["pairs"], manifest.funnel, ran, against)


def published(run: Run, stage: Stage) -> list[Published]:
    """The rows that a stage made."""
    kind: type[Published] = stage.gives
    return [row for path in run.directory(stage).kept for row in read_records(path, kind)]


def lost(run: Run) -> Iterator[DropRecord]:
    """What was dropped or errored, stage by stage."""
    for stage in ALL:
        path = run.directory(stage).lost
        if path.exists():
            yield from read_records(path, DropRecord)


def rejected(run: Run) -> Rejected:
    """What became of the candidates that verify dropped, and of models' answers. Raises: ConservationError."""
    (verify,) = (stage for stage in STAGES if stage.takes is Candidate)
    paths = [path for stage in (verify, DISTILL) if (path := run.directory(stage).lost).exists()]
    if not paths:
        return Rejected()
    candidates = (
        candidate for shard in run.directory(before(verify)).kept for candidate in read_records(shard, Candidate)
    )
    return reject(candidates, (loss for path in paths for loss in read_records(path, DropRecord)))


def unscreened(run: Run) -> Iterator[Pair]:
    """The rows that a run's filters were asked of."""
    (screen,) = (stage for stage in STAGES if stage.takes is Verified and stage.gives is Pair)
    for shard in run.directory(before(screen)).kept:
        yield from (flatten_verified(verified) for verified in read_records(shard, Verified))


def taught(run: Run) -> Acceptance | None:
    """What asking models came to; None if none was asked."""
    directory = run.directory(DISTILL)
    kept = (verified for shard in directory.kept for verified in read_records(shard, Verified))
    losses = read_records(directory.lost, DropRecord) if directory.lost.exists() else iter(())
    return acceptance(kept, losses)


def overlapping(run: Run) -> tuple[Contamination, ...]:
    """Rows of the modules that decontaminate took out."""
    (stage,) = (stage for stage in STAGES if stage.compares)
    path = run.directory(stage).lost
    if not path.exists():
        return ()
    shards = run.directory(before(stage)).kept
    modules = (module for shard in shards for module in read_records(shard, Probed))
    return contaminated(modules, read_records(path, DropRecord))


def claim(root: Path, corpus: str | None) -> str:
    """Remember which corpus the run directory is for, or say which it is for already. Raises: UserError."""
    path = root / "run.json"
    if path.exists():
        try:
            known = str(json.loads(read_bytes(path))["corpus"])
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path} is damaged: delete it and give the corpus again; no work is lost") from None
        if corpus is not None and corpus != known:
            raise UserError(f"{root} holds a run of the corpus {known}, not {corpus}: give another --out")
        return known
    if corpus is None:
        raise UserError(f"{root} holds no run: start one with `kernelquarry dataset CORPUS --out {root}`")
    with replace_file(path) as stream:
        stream.write(json.dumps({"corpus": corpus}).encode())
    return corpus


def leave_out(root: Path, listed: Path) -> None:
    """Remember whose code the run must not hold. Raises: UserError: the file is no such list."""
    given = "".join(f"{line}\n" for line in read_opt_out(listed).lines())
    with replace_file(root / OPT_OUT) as stream:
        stream.write(given.encode())


def counts(run: Run) -> list[StageCounts]:
    """What entered each finished stage, and how it left."""
    manifests = [run.manifest(stage) for stage in ALL]
    return [count for manifest in manifests if manifest is not None for count in manifest.counts]


def run_stage(run: Run, stage: Stage, watch: Watch, part: Part | None = None) -> tuple[StageManifest, bool]:
    """Bring one stage up to date, or a part of it. Returns its manifest, and whether there was anything to do."""
    if part is not None and stage.divides_by is None:
        raise UserError(f"{stage.name} looks at all records at once: it has no parts")
    asked = ask(run, stage)
    directory = run.directory(stage) if part is None else run.part(stage, part)
    finished = directory.finished(asked.made_by.key, asked.inputs)
    if finished is not None:
        return finished, False
    entered = asked.entered if part is None else None
    with watch(stage.name, entered if len(stage.units) == 1 else None):
        manifest = execute(
            lambda: _outcomes(run, stage, asked, part),
            stage=stage.name,
            kind=stage.gives,
            made_by=asked.made_by,
            directory=directory,
            inputs=asked.inputs,
            counted=_counted(stage, entered),
            shards=max(1, math.ceil((asked.entered or 1) / RECORDS_PER_SHARD)),
            options=run.options,
        )
    return manifest, True


def _beside(run: Run, stage: Stage) -> Stage | None:
    """The stage whose modules are asked about too, where somebody writes kernels that there are none of."""
    teaching = run.workplace.teaching
    return named(stage.beside) if teaching is not None and teaching.writes and stage.beside else None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a stage is to do: its results follow from it."""

    made_by: Fingerprint
    inputs: dict[str, str]  # shard of the stage before, or source -> digest
    shards: list[Path]  # to read
    entered: int | None  # how many records the first line of the funnel counts; None for the first stage


def ask(run: Run, stage: Stage) -> Asked:
    """Raises: UserError: the stage before has not run, or its shards are not as it wrote them."""
    made_by = fingerprint(run, stage)
    if stage.takes is None:
        return Asked(made_by, {**run.corpus.digests(), OPT_OUT: run.opt_out.digest}, [], None)
    inputs, shards, entered = _inputs(run, stage, before(stage))
    if (beside := _beside(run, stage)) is not None:
        others, _, entered = _inputs(run, stage, beside)
        inputs |= {f"{beside.name}/{name}": found for name, found in others.items()}
    return Asked(made_by, inputs, shards, entered)


def fingerprint(run: Run, stage: Stage) -> Fingerprint:
    """What decides the stage's results, as things are now."""
    made_by = Fingerprint.of(stage.root, stage.packages, stage.executes and bool(run.workplace.sandbox.gpus))
    if not stage.asks:
        return made_by
    teaching = run.workplace.teaching
    return replace(made_by, asks=teaching.digest if teaching else "")


def _inputs(run: Run, stage: Stage, earlier: Stage) -> tuple[dict[str, str], list[Path], int]:
    """Digests of what the stage reads of an earlier one, its shards, and how many records they hold."""
    manifest, again = run.manifest(earlier), f"run `kernelquarry {earlier.name} {run.root}` first"
    if manifest is None:
        raise UserError(f"{run.root}: the stage {earlier.name} has not run yet: {again}")
    directory = run.directory(earlier)
    if changed := directory.changed(manifest):
        raise UserError(f"{changed}: missing or changed since it was written: {again}")
    digests = {name: sha256 for name, sha256 in manifest.outputs.items() if name != LOST}
    others = {path.name: digest(path) for path in run.indexes} if stage.compares else {}
    if stage.settings:
        others[stage.settings] = canonical(asdict(getattr(run.settings, stage.settings)))
    return {**digests, **others}, [directory.path / name for name in sorted(digests)], manifest.counts[-1].kept


def _counted(stage: Stage, entered: int | None) -> tuple[Counted, ...]:
    """The shards of the stage before tell how many units enter the first line; later lines find their own."""
    first, *rest = stage.units
    return (Counted(*first, entered), *(Counted(*line, None) for line in rest))


def _outcomes(run: Run, stage: Stage, asked: Asked, part: Part | None) -> beam.PTransform:
    """The transform that makes (counted stage, outcome) pairs of the stage's inputs."""
    if stage.takes is None:
        assert stage.wiring is not None
        return stage.wiring(run.corpus, run.opt_out, asked.made_by.key, part)
    records = _of_part(read_shards(asked.shards, stage.takes), stage, part)
    apply = ApplyStage(stage.work, asked.made_by, run.workplace) if stage.work is not None else None
    if apply is not None and stage.executes and (hint := accelerator(run.options)):
        apply = apply.with_resource_hints(accelerator=hint)
    if stage.asks:
        assert stage.wiring is not None
        if run.workplace.teaching is None:
            return records | stage.wiring()
        beside = _beside(run, stage)
        modules = None
        if beside is not None:
            modules = _of_part(read_shards(run.directory(beside).kept, beside.gives), stage, part)
        return records | stage.wiring(apply, modules)
    if apply is None:
        assert stage.wiring is not None
        given = (run.indexes, run.workplace.sandbox) if stage.compares else ()
        told = (getattr(run.settings, stage.settings),) if stage.settings else ()
        return records | stage.wiring(*given, *told)
    return records | apply | tag_as(stage.name)


def _of_part(records: beam.PTransform, stage: Stage, part: Part | None) -> beam.PTransform:
    return records if part is None else records | "Part" >> beam.Filter(_in_part, part, stage.divides_by)


def _in_part(record: Any, part: Part, divides_by: Callable[[Any], str]) -> bool:
    return part.holds(number_of(divides_by(record)))
