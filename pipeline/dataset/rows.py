"""Reads the rows of a dataset folder back as records, also those of an earlier schema version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.migrations import read_published
from kernelquarry.pipeline.schema.records import Pair, Rejection, TrainingPair, Variant

from .configs import config

R = TypeVar("R")


def read_rows(dataset: Path) -> Iterator[Pair]:
    """Every row of the dataset's `pairs`, shard by shard. Raises: UserError, SchemaError."""
    if not shards(dataset, "pairs"):
        raise UserError(f"{dataset} holds no dataset: make one with `kernelquarry dataset`, or name one with --dataset")
    yield from read_config(dataset, "pairs", Pair)


def read_rejections(dataset: Path) -> Iterator[Rejection]:
    """Every row of its `rejected`, which may have none. Raises: SchemaError."""
    return read_config(dataset, "rejected", Rejection)


def read_config(dataset: Path, name: str, kind: type[R]) -> Iterator[R]:
    """Every row of one config, none if it is left out. Raises: SchemaError."""
    for shard in shards(dataset, name):
        yield from read_published(shard, kind)


def shards(dataset: Path, name: str) -> list[Path]:
    """Of one config, in their order."""
    return sorted((dataset / config(name).folder).glob("*.parquet"))


def find_row(dataset: Path, start: str) -> Pair | Rejection:
    """The one row whose id, or module's name, starts with `start`. Raises: UserError if there is none, or several.

    A name is that of a pair, if there is one.
    """
    backward = read_config(dataset, "backward", TrainingPair)
    variants = read_config(dataset, "variants", Variant)
    for rows in (read_rows(dataset), backward, variants, read_rejections(dataset)):
        found = [row for row in rows if row.id.startswith(start) or row.module_name == start]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{len(found)} rows match {start}: {', '.join(row.id for row in found[:5])}, ...")
    raise UserError(f"{dataset} has no row {start}: ids look like pair_0123456789abcdef or rej_0123456789abcdef")
