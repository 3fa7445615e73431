"""Writes the published folder: shards, card, metadata and manifest.

README.md              the card; its header tells `datasets` where the splits are
VERIFIER.md            measured error rates of the verifier
croissant.json         the card's content for machines, with a description of every column
decontamination.json   benchmarks that rows were compared with, and the modules that were removed
manifest.json          digests, counts, settings and versions
data/CONFIG/           shards such as train-00000-of-00001.parquet, for each config with rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest, write_text
from kernelquarry.pipeline.schema.records import SCHEMA_VERSION, Pair, Rejection

from .card import render_card, render_metadata, render_verifier
from .configs import CONFIGS, Published, derive_rows
from .contaminated import REPORT, describe_benchmarks, render_report
from .origin import Origin, origin
from .rejected import Rejected
from .shards import write_rows
from .summary import summarise, tally

CARD, VERIFIER, CROISSANT, MANIFEST = "README.md", "VERIFIER.md", "croissant.json", "manifest.json"


@dataclass(frozen=True, slots=True)
class Build:
    """The inputs that a dataset was built from."""

    corpus: str
    sources: Mapping[str, str]  # package or folder -> digest
    opt_out: str = ""  # SHA-256 of the opt-out list
    benchmarks: Sequence[Mapping[str, Any]] = ()  # `IndexFile`s of the benchmarks that rows were compared with
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of the run; {}: an earlier release


@dataclass(frozen=True, slots=True)
class DatasetManifest:
    """The manifest of a published folder. Holds no date and no path, so that equal builds give equal bytes."""

    schema_version: int
    build: Build
    origin: Origin
    rows: dict[str, dict[str, int]]  # config -> split -> number
    rejected: StageCounts  # rejected candidates: kept are published, dropped were withheld by a filter
    funnel: tuple[StageCounts, ...]
    environments: tuple[dict[str, str], ...]  # machines and software of the verdicts
    files: dict[str, str]  # path -> SHA-256, without the manifest itself


@dataclass(frozen=True, slots=True)
class Release:
    """The contents of a published folder."""

    rows: Mapping[str, Sequence[Published]]  # by config
    rejected: StageCounts
    funnel: Sequence[StageCounts]
    build: Build
    origin: Origin


def write_dataset(
    folder: Path,
    pairs: Sequence[Pair],
    rejected: Rejected,
    funnel: Sequence[StageCounts],
    build: Build,
    stage_rows: Mapping[str, Sequence[Published]] = {},
) -> DatasetManifest:
    """Write the dataset of a build: the pairs, the rows derived from them, and the rows of other configs.

    `stage_rows`: config -> rows, for the other configs, whose rows come from stages.
    Raises: as `write_release`.
    """
    rows = {**derive_rows(pairs), **stage_rows, "pairs": pairs, "rejected": rejected.rows}
    return write_release(folder, Release(rows, rejected.counts, funnel, build, origin()))


def write_release(folder: Path, release: Release) -> DatasetManifest:
    """Write the folder, the manifest last. The same release gives the same bytes.

    Raises: UserError: there is no pair, and readers cannot load an empty dataset; ValueError: a row has no split.
    """
    rows, corpus = release.rows, release.build.corpus
    pairs = [row for row in rows.get("pairs", ()) if isinstance(row, Pair)]
    if not pairs:
        raise UserError(f"{folder}: no pair was kept, so there is no dataset to write: `kernelquarry funnel` shows why")
    written = {each.name: write_rows(folder, each.folder, each.record, rows.get(each.name, ())) for each in CONFIGS}
    configs = {name: shards for name, shards in written.items() if shards}
    counts = {name: dict(tally(row.split for row in rows[name])) for name in configs}
    shards = [path.as_posix() for config in configs.values() for paths in config.values() for path in paths]
    files = {name: digest(folder / name) for name in shards}
    summary = summarise(pairs)
    rejections = tuple(row for row in rows.get("rejected", ()) if isinstance(row, Rejection))
    rejected = Rejected(rejections, release.rejected)
    benchmarks = describe_benchmarks(release.build.benchmarks)
    thresholds = release.build.settings.get("decontaminate", {})
    least = thresholds.get("least_operators", 1)
    private = release.build.settings.get("licence", {}).get("private", False)
    pages = {
        REPORT: render_report(release.build.benchmarks, rows.get("contaminated", ()), thresholds),
        CARD: render_card(summary, release.funnel, configs, counts, rejected, corpus, benchmarks, least, private),
        VERIFIER: render_verifier(),
        CROISSANT: render_metadata(summary, configs, files, corpus),
    }
    for name, text in pages.items():
        write_text(folder / name, text)
    manifest = DatasetManifest(
        schema_version=SCHEMA_VERSION,
        build=release.build,
        origin=release.origin,
        rows=counts,
        rejected=release.rejected,
        funnel=tuple(release.funnel),
        environments=tuple(asdict(environment) for environment in summary.environments),
        files=dict(sorted((files | {name: digest(folder / name) for name in pages}).items())),
    )
    write_text(folder / MANIFEST, json.dumps(asdict(manifest), indent=1, sort_keys=True) + "\n")
    return manifest


def published_files(folder: Path) -> dict[str, Path]:
    """Name -> path of every file of the folder, except hidden ones."""
    files = ((path.relative_to(folder), path) for path in sorted(folder.rglob("*")) if path.is_file())
    return {name.as_posix(): path for name, path in files if not any(part.startswith(".") for part in name.parts)}
