"""Sorted rows, cut into shards of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path

from kernelquarry.pipeline.schema.arrow import write_shard
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.split import SPLITS

FOLDER = Path("data/pairs")  # inside the dataset
ROWS_PER_SHARD = 10_000  # some hundred MB of text


def write_pairs(dataset: Path, pairs: Iterable[Pair], rows_per_shard: int = ROWS_PER_SHARD) -> dict[str, list[Path]]:
    """Write `data/pairs/<split>-<n>-of-<total>.parquet` and remove the shards of an earlier build.

    A split without rows has no shard: `datasets` refuses one. Returns the shards by split, relative to `dataset`.

    Raises: ValueError if a pair has no split.
    """
    rows: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    for pair in pairs:
        if pair.split not in rows:
            raise ValueError(f"{pair.id} has the split {pair.split!r}: split before writing")
        rows[pair.split].append(pair)
    shards = {split: _write_split(dataset, split, rows[split], rows_per_shard) for split in SPLITS if rows[split]}
    _remove_others(dataset, shards)
    return shards


def _write_split(dataset: Path, split: str, pairs: list[Pair], rows_per_shard: int) -> list[Path]:
    pairs = sorted(pairs, key=lambda pair: pair.id)
    total = ceil(len(pairs) / rows_per_shard)
    paths = [FOLDER / f"{split}-{index:05d}-of-{total:05d}.parquet" for index in range(total)]
    for index, path in enumerate(paths):
        write_shard(dataset / path, pairs[index * rows_per_shard : (index + 1) * rows_per_shard], Pair)
    return paths


def _remove_others(dataset: Path, shards: dict[str, list[Path]]) -> None:
    """Shards of an earlier build under other names would be loaded with these; a killed one leaves halves."""
    written = {path.name for paths in shards.values() for path in paths}
    for path in (dataset / FOLDER).glob("*"):
        if path.name not in written and path.suffix in (".parquet", ".tmp"):
            path.unlink()
