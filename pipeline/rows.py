"""Reads the rows of a dataset folder back as records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .schema.arrow import read_records
from .schema.errors import UserError
from .schema.records import Pair


def read_rows(dataset: Path) -> Iterator[Pair]:
    """Every row of the dataset's `pairs`, shard by shard. Raises: UserError, SchemaError."""
    shards = sorted((dataset / "data" / "pairs").glob("*.parquet"))
    if not shards:
        raise UserError(f"{dataset} holds no dataset: make one with `kernelquarry dataset`, or name one with --dataset")
    for shard in shards:
        yield from read_records(shard, Pair)


def find_row(dataset: Path, start: str) -> Pair:
    """The one row whose id, or module's name, starts with `start`. Raises: UserError if there is none, or several."""
    found = [pair for pair in read_rows(dataset) if pair.id.startswith(start) or pair.module_name == start]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"{dataset} has no row {start}: ids look like pair_0123456789abcdef")
    raise UserError(f"{len(found)} rows match {start}: {', '.join(pair.id for pair in found[:5])}, ...")
