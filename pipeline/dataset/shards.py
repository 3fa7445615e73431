"""Writes sorted rows to shards of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import TypeVar

from kernelquarry.pipeline.schema.arrow import write_shard
from kernelquarry.transforms.split import SPLITS

from .configs import Published

ROWS_PER_SHARD = 10_000  # about 300 MB of text
R = TypeVar("R", bound=Published)


def write_rows(
    dataset: Path, folder: Path, kind: type[R], rows: Iterable[R], rows_per_shard: int = ROWS_PER_SHARD
) -> dict[str, list[Path]]:
    """Write `<folder>/<split>-<n>-of-<total>.parquet` below `dataset`, and remove the shards of an earlier build.

    A split without rows gets no shard, since `datasets` rejects empty shards.

    Returns: the shards by split, relative to `dataset`.
    Raises: ValueError: a row has no split.
    """
    by_split: dict[str, list[R]] = {split: [] for split in SPLITS}
    for row in rows:
        if row.split not in by_split:
            raise ValueError(f"{row.id} has the split {row.split!r}: split before writing")
        by_split[row.split].append(row)
    shards = {
        split: _write_split(dataset, folder / split, kind, split_rows, rows_per_shard)
        for split, split_rows in by_split.items()
        if split_rows
    }
    _remove_stale(dataset / folder, shards)
    return shards


def _write_split(dataset: Path, start: Path, kind: type[R], rows: list[R], rows_per_shard: int) -> list[Path]:
    """Write one split to shards whose paths begin with `start`."""
    rows = sorted(rows, key=lambda row: row.id)
    total = ceil(len(rows) / rows_per_shard)
    paths = [start.with_name(f"{start.name}-{index:05d}-of-{total:05d}.parquet") for index in range(total)]
    for index, path in enumerate(paths):
        write_shard(dataset / path, rows[index * rows_per_shard : (index + 1) * rows_per_shard], kind)
    return paths


def _remove_stale(folder: Path, shards: dict[str, list[Path]]) -> None:
    """Remove shards of an earlier build, which readers would load too, and partial files of a killed one."""
    written = {path.name for paths in shards.values() for path in paths}
    for path in folder.glob("*"):
        if path.name not in written and path.suffix in (".parquet", ".tmp"):
            path.unlink()
