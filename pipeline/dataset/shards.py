"""Sorted rows, cut into shards of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import Protocol, TypeVar

from kernelquarry.pipeline.schema.arrow import write_shard
from kernelquarry.transforms.split import SPLITS

ROWS_PER_SHARD = 10_000  # some hundred MB of text


class Splitted(Protocol):
    """A row that knows where it goes."""

    @property
    def id(self) -> str: ...
    @property
    def split(self) -> str: ...


R = TypeVar("R", bound=Splitted)


def write_rows(
    dataset: Path, folder: Path, kind: type[R], rows: Iterable[R], rows_per_shard: int = ROWS_PER_SHARD
) -> dict[str, list[Path]]:
    """Write `<folder>/<split>-<n>-of-<total>.parquet` below `dataset` and remove the shards of an earlier build.

    A split without rows has no shard: `datasets` refuses one. Returns the shards by split, relative to `dataset`.

    Raises: ValueError if a row has no split.
    """
    by_split: dict[str, list[R]] = {split: [] for split in SPLITS}
    for row in rows:
        if row.split not in by_split:
            raise ValueError(f"{row.id} has the split {row.split!r}: split before writing")
        by_split[row.split].append(row)
    shards = {
        split: _write_split(dataset, folder / split, kind, found, rows_per_shard)
        for split, found in by_split.items()
        if found
    }
    _remove_others(dataset / folder, shards)
    return shards


def _write_split(dataset: Path, start: Path, kind: type[R], rows: list[R], rows_per_shard: int) -> list[Path]:
    """Shards whose paths begin with `start`."""
    rows = sorted(rows, key=lambda row: row.id)
    total = ceil(len(rows) / rows_per_shard)
    paths = [start.with_name(f"{start.name}-{index:05d}-of-{total:05d}.parquet") for index in range(total)]
    for index, path in enumerate(paths):
        write_shard(dataset / path, rows[index * rows_per_shard : (index + 1) * rows_per_shard], kind)
    return paths


def _remove_others(folder: Path, shards: dict[str, list[Path]]) -> None:
    """Shards of an earlier build under other names would be loaded with these; a killed one leaves halves."""
    written = {path.name for paths in shards.values() for path in paths}
    for path in folder.glob("*"):
        if path.name not in written and path.suffix in (".parquet", ".tmp"):
            path.unlink()
