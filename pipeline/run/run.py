"""A run directory: the corpus that it is for, and where its stages and products lie.

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

Beam, torch and the Hub's client take seconds to import, so each method imports what it needs when it is called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from kernelquarry.filters.optout import OptOut, read_opt_out
from kernelquarry.pipeline.graph import ALL, ORDER, SLICE, SLICES, Stage
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint, StageManifest
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import read_bytes, write_text
from kernelquarry.pipeline.schema.parts import Part

from .run_settings import Settings, remembered
from .runner_options import DEFAULT, accelerator
from .stage_directory import MANIFEST, StageDirectory

if TYPE_CHECKING:
    from kernelquarry.pipeline.sandbox import SandboxSettings
    from kernelquarry.transforms.distill import DistillConfig
    from kernelquarry.transforms.read import Corpus
    from kernelquarry.transforms.stage_transform import StageContext

OPT_OUT = "opt-out.txt"
BENCHMARKS = "benchmarks"  # folder of indexes, inside the cache
ANSWERS = "answers.sqlite"  # cache of models' answers, inside the cache
KERNELS = "kernels"  # cache of compiled kernels, inside the cache
_CLAIM = "run.json"
_FORMAT = 2  # of run directories; 1 had fingerprints of files that were listed by hand


@dataclass(frozen=True)
class Run:
    """A run directory and what its stages share."""

    root: Path
    source: str  # what the corpus is made of: its name, or the path of a folder or file
    cache: Path  # where downloads are kept
    store: Path  # results of expensive work
    sandbox: SandboxSettings
    distill: DistillConfig | None = None  # None: no model is asked
    batch: Path | None = None  # folder for the questions of a batch; no model is asked then
    options: tuple[str, ...] = DEFAULT  # Beam's, which name the runner

    @cached_property
    def corpus(self) -> Corpus:
        """Opened at first use: a run directory can be inspected without its corpus. Raises: UserError."""
        from kernelquarry.transforms.read import open_corpus

        return open_corpus(self.source.removesuffix(SLICES), self.cache)

    @property
    def opt_out(self) -> OptOut:
        """The shipped opt-out list, with the one that the run was given. Raises: UserError."""
        given = self.root / OPT_OUT
        return read_opt_out(given if given.exists() else None)

    @property
    def settings(self) -> Settings:
        """Thresholds, caps and targets. Raises: UserError: the file is damaged."""
        from kernelquarry.transforms.read import is_released

        found = remembered(self.root)
        return replace(found, targets=found.targets.of_run(is_released(self.source.removesuffix(SLICES))))

    @property
    def indexes(self) -> tuple[Path, ...]:
        """Indexes of the benchmarks that modules are compared with."""
        from kernelquarry.transforms.decontaminate import shipped

        return tuple(shipped(self.cache / BENCHMARKS))

    @property
    def has_slices(self) -> bool:
        """True if the corpus was named with `+slices`."""
        return self.source.endswith(SLICES)

    @property
    def order(self) -> tuple[Stage, ...]:
        """The stages that the run can have, in their order."""
        return tuple(stage for stage in ORDER if stage is not SLICE or self.has_slices)

    def has_extra(self, stage: Stage) -> bool:
        """True if the run has records of the stage's `extra_input`."""
        if stage.extra_input == SLICE.name:
            return self.has_slices
        return self.distill is not None and self.distill.has_write_route  # models write kernels from scratch

    def directory(self, stage: Stage) -> StageDirectory:
        return stage_directory(self.root, stage)

    def part(self, stage: Stage, part: Part) -> StageDirectory:
        return StageDirectory(self.root / "parts" / f"{self.directory(stage).path.name}.{part}")

    def manifest(self, stage: Stage) -> StageManifest | None:
        return StageManifest.read(self.directory(stage).path / MANIFEST)

    def counts(self) -> list[StageCounts]:
        """The funnel: what entered each finished stage, and how it left."""
        return counts_of(self.root)

    def fingerprint(self, stage: Stage) -> Fingerprint:
        """Fingerprint of the current code and settings, which with the input determine the stage's results."""
        transform = stage.load()
        found = Fingerprint.of(stage.module, transform.executes_kernels and bool(self.sandbox.gpus))
        if not transform.calls_models:
            return found
        return replace(found, teachers=self.distill.digest if self.distill else "")

    def context(self, stage: Stage, part: Part | None = None) -> StageContext:
        """The context of the stage's transform. Raises: UserError: settings, corpus or opt-out list are damaged."""
        from kernelquarry.transforms.stage_transform import StageContext

        first = stage.input_type is None
        return StageContext(
            fingerprint=self.fingerprint(stage),
            store=self.store,
            sandbox=self.sandbox,
            settings=self.settings,
            corpus=self.corpus if first else None,
            opt_out=self.opt_out if first else None,
            indexes=self.indexes,
            distill=self.distill,
            answers=self.cache / ANSWERS,
            batch=self.batch,
            part=part,
            accelerator=accelerator(self.options) if stage.load().executes_kernels else "",
        )


def stage_directory(root: Path, stage: Stage) -> StageDirectory:
    return StageDirectory(root / "stages" / f"{ALL.index(stage) + 1:02d}-{stage.name}")


def counts_of(root: Path) -> list[StageCounts]:
    """The funnel of the run in `root`."""
    manifests = [StageManifest.read(stage_directory(root, stage).path / MANIFEST) for stage in ORDER]
    return [count for manifest in manifests if manifest is not None for count in manifest.counts]


def claim(root: Path, corpus: str | None) -> str:
    """Write the corpus of a new run directory to `run.json`, or return the corpus that the run was started with.

    Raises: UserError: as `claimed` does.
    """
    source = claimed(root, corpus)
    path = root / _CLAIM
    if not path.exists():
        write_text(path, json.dumps({"corpus": source, "format": _FORMAT, "release": version("kernelquarry")}))
    return source


def claimed(root: Path, corpus: str | None = None) -> str:
    """The corpus that the run in `root` was started with; for a new run directory `corpus`. Writes nothing.

    Raises: UserError: the directory belongs to another corpus or release, or is new and `corpus` is None.
    """
    path = root / _CLAIM
    if not path.exists():
        if corpus is None:
            raise UserError(f"{root} holds no run: start one with `kernelquarry dataset CORPUS --out {root}`")
        return corpus
    try:
        fields = json.loads(read_bytes(path))
        known, number, release = str(fields["corpus"]), fields.get("format", 1), fields.get("release", "0.1")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged: delete it and give the corpus again; no work is lost") from None
    if number != _FORMAT:
        raise UserError(
            f"{root} was made by release {release}, this is {version('kernelquarry')}: its stages and its store cannot "
            "be continued: start anew with another --out; its dataset stays readable"
        )
    if corpus is not None and corpus != known:
        raise UserError(f"{root} holds a run of the corpus {known}, not {corpus}: give another run directory")
    return known


def save_opt_out(root: Path, listed: Path) -> None:
    """Keep the list of whose code the run must not hold. Raises: UserError: the file is no such list."""
    given = "".join(f"{line}\n" for line in read_opt_out(listed).lines())
    write_text(root / OPT_OUT, given)
