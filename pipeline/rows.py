"""Reads the rows of a dataset folder back as records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from kernelquarry.transforms.write import FOLDERS

from .schema.arrow import read_records
from .schema.errors import UserError
from .schema.records import Pair, Rejection

R = TypeVar("R", Pair, Rejection)


def read_rows(dataset: Path) -> Iterator[Pair]:
    """Every row of the dataset's `pairs`, shard by shard. Raises: UserError, SchemaError."""
    if not _shards(dataset, Pair):
        raise UserError(f"{dataset} holds no dataset: make one with `kernelquarry dataset`, or name one with --dataset")
    yield from _read(dataset, Pair)


def read_rejections(dataset: Path) -> Iterator[Rejection]:
    """Every row of its `rejected`, which may have none. Raises: SchemaError."""
    return _read(dataset, Rejection)


def find_row(dataset: Path, start: str) -> Pair | Rejection:
    """The one row whose id, or module's name, starts with `start`. Raises: UserError if there is none, or several.

    A name is that of a pair, if there is one.
    """
    for rows in (read_rows(dataset), read_rejections(dataset)):
        found = [row for row in rows if row.id.startswith(start) or row.module_name == start]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{len(found)} rows match {start}: {', '.join(row.id for row in found[:5])}, ...")
    raise UserError(f"{dataset} has no row {start}: ids look like pair_0123456789abcdef or rej_0123456789abcdef")


def _shards(dataset: Path, kind: type) -> list[Path]:
    return sorted((dataset / FOLDERS[kind]).glob("*.parquet"))


def _read(dataset: Path, kind: type[R]) -> Iterator[R]:
    for shard in _shards(dataset, kind):
        yield from read_records(shard, kind)
