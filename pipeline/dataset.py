"""The published folder: shards, a card that readers and loaders understand, and a manifest of both.

README.md                               the card; its header tells `datasets` where the splits are
manifest.json                           digests, counts, versions: what was built, from what
data/pairs/train-00000-of-00001.parquet    a folder a config that has rows, see `configs`
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelquarry.transforms.write import write_rows

from .card import render_card
from .configs import CONFIGS, Published, derived
from .funnel import StageCounts
from .manifest import digest
from .rejected import Rejected
from .schema.errors import UserError
from .schema.files import replace_file
from .schema.records import SCHEMA_VERSION, Pair
from .summary import summarise, tally

CARD, MANIFEST = "README.md", "manifest.json"


@dataclass(frozen=True, slots=True)
class Build:
    """What a dataset was built from."""

    corpus: str
    sources: Mapping[str, str]  # package or folder -> digest


@dataclass(frozen=True, slots=True)
class DatasetManifest:
    """Of a published folder. Holds no date and no path, so that the same build gives the same bytes."""

    release: str  # of kernelquarry
    schema_version: int
    build: Build
    rows: dict[str, dict[str, int]]  # config -> split -> number
    rejected: StageCounts  # candidates that verify dropped: kept are published, dropped are withheld by a filter
    funnel: tuple[StageCounts, ...]
    environments: tuple[dict[str, str], ...]  # that verdicts were reached on
    files: dict[str, str]  # path -> sha256, the manifest's own excepted


def write_dataset(
    folder: Path,
    pairs: Sequence[Pair],
    rejected: Rejected,
    funnel: Sequence[StageCounts],
    build: Build,
    others: Mapping[str, Sequence[Published]] = {},
) -> DatasetManifest:
    """Write the folder and return its manifest, which is written last. The same arguments give the same bytes.

    `others` are rows by config, of configs that neither follow from the pairs nor are `rejected`.

    Raises: UserError if there is no pair, since no reader loads a dataset of nothing; ValueError if a row
    has no split.
    """
    if not pairs:
        raise UserError(f"{folder}: no pair was kept, so there is no dataset to write: the funnel tells why")
    rows = {**derived(pairs), **others, "pairs": pairs, "rejected": rejected.rows}
    configs = {each.name: write_rows(folder, each.folder, each.record, rows.get(each.name, ())) for each in CONFIGS}
    summary = summarise(pairs)
    _write_text(folder / CARD, render_card(summary, funnel, configs, rejected, build.corpus))
    shards = [path for config in configs.values() for paths in config.values() for path in paths]
    files = sorted([CARD, *(path.as_posix() for path in shards)])
    manifest = DatasetManifest(
        release=importlib.metadata.version("kernelquarry"),
        schema_version=SCHEMA_VERSION,
        build=build,
        rows={name: dict(tally(row.split for row in rows[name])) for name, shards in configs.items() if shards},
        rejected=rejected.counts,
        funnel=tuple(funnel),
        environments=tuple(asdict(environment) for environment in summary.environments),
        files={name: digest(folder / name) for name in files},
    )
    _write_text(folder / MANIFEST, json.dumps(asdict(manifest), indent=1, sort_keys=True) + "\n")
    return manifest


def _write_text(path: Path, text: str) -> None:
    with replace_file(path) as stream:
        stream.write(text.encode())
