"""The published folder: shards, a card that readers and loaders understand, and a manifest of all.

README.md                               the card; its header tells `datasets` where the splits are
VERIFIER.md                             measured error rates of what checked the rows
croissant.json                          the same for machines, with every column
decontamination.json                    what was compared with which benchmarks, and what was taken out
manifest.json                           digests, counts, settings, versions: what was built, from what, with what
data/pairs/train-00000-of-00001.parquet    a folder a config that has rows, see `configs`
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest, replace_file
from kernelquarry.pipeline.schema.records import SCHEMA_VERSION, Pair, Rejection

from .card import render_card, render_metadata, render_verifier
from .configs import CONFIGS, Published, derived
from .contaminated import REPORT, describe, render_report
from .origin import Origin, origin
from .rejected import Rejected
from .summary import summarise, tally

CARD, VERIFIER, CROISSANT, MANIFEST = "README.md", "VERIFIER.md", "croissant.json", "manifest.json"


@dataclass(frozen=True, slots=True)
class Build:
    """What a dataset was built from."""

    corpus: str
    sources: Mapping[str, str]  # package or folder -> digest
    opt_out: str = ""  # sha256 of the list that was honoured
    benchmarks: Sequence[Mapping[str, Any]] = ()  # that rows were compared with: `IndexFile`s
    settings: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # of `settings.Settings`; {}: an earlier release


@dataclass(frozen=True, slots=True)
class DatasetManifest:
    """Of a published folder. Holds no date and no path, so that the same build gives the same bytes."""

    schema_version: int
    build: Build
    origin: Origin
    rows: dict[str, dict[str, int]]  # config -> split -> number
    rejected: StageCounts  # candidates that verify dropped: kept are published, dropped are withheld by a filter
    funnel: tuple[StageCounts, ...]
    environments: tuple[dict[str, str], ...]  # that verdicts were reached on
    files: dict[str, str]  # path -> sha256, the manifest's own excepted


@dataclass(frozen=True, slots=True)
class Release:
    """All that a published folder is made of."""

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
    others: Mapping[str, Sequence[Published]] = {},
) -> DatasetManifest:
    """Write what was built: the pairs, what follows from them, and what else stages gave.

    `others` are rows by config, of configs that neither follow from the pairs nor are `rejected`.
    Raises: as `write_release`.
    """
    rows = {**derived(pairs), **others, "pairs": pairs, "rejected": rejected.rows}
    return write_release(folder, Release(rows, rejected.counts, funnel, build, origin()))


def write_release(folder: Path, release: Release) -> DatasetManifest:
    """Write the folder and return its manifest, which is written last. The same release gives the same bytes.

    Raises: UserError if there is no pair, since no reader loads a dataset of nothing; ValueError if a row
    has no split.
    """
    rows, corpus = release.rows, release.build.corpus
    pairs = [row for row in rows.get("pairs", ()) if isinstance(row, Pair)]
    if not pairs:
        raise UserError(f"{folder}: no pair was kept, so there is no dataset to write: the funnel tells why")
    written = {each.name: write_rows(folder, each.folder, each.record, rows.get(each.name, ())) for each in CONFIGS}
    configs = {name: shards for name, shards in written.items() if shards}
    counts = {name: dict(tally(row.split for row in rows[name])) for name in configs}
    shards = [path.as_posix() for config in configs.values() for paths in config.values() for path in paths]
    files = {name: digest(folder / name) for name in shards}
    summary = summarise(pairs)
    rejections = tuple(row for row in rows.get("rejected", ()) if isinstance(row, Rejection))
    rejected = Rejected(rejections, release.rejected)
    benchmarks = describe(release.build.benchmarks)
    pages = {
        REPORT: render_report(
            release.build.benchmarks, rows.get("contaminated", ()), release.build.settings.get("decontaminate", {})
        ),
        CARD: render_card(summary, release.funnel, configs, counts, rejected, corpus, benchmarks),
        VERIFIER: render_verifier(),
        CROISSANT: render_metadata(summary, configs, files, corpus),
    }
    for name, text in pages.items():
        _write_text(folder / name, text)
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
    _write_text(folder / MANIFEST, json.dumps(asdict(manifest), indent=1, sort_keys=True) + "\n")
    return manifest


def published_files(folder: Path) -> dict[str, Path]:
    """Name -> path of every file of the folder, but those that tools hide there."""
    found = ((path.relative_to(folder), path) for path in sorted(folder.rglob("*")) if path.is_file())
    return {name.as_posix(): path for name, path in found if not any(part.startswith(".") for part in name.parts)}


def _write_text(path: Path, text: str) -> None:
    with replace_file(path) as stream:
        stream.write(text.encode())
