"""Reads the rows of a dataset folder as records, also those of earlier schema versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.migrations import read_published
from kernelquarry.pipeline.schema.records import Pair, Rejection, TrainingPair, Variant

from .configs import find_config

R = TypeVar("R")


def read_rows(dataset: Path) -> Iterator[Pair]:
    """Every row of the config `pairs`. Raises: UserError, SchemaError."""
    if not shards(dataset, "pairs"):
        raise UserError(f"{dataset} holds no dataset: make one with `kernelquarry dataset`, or name another folder")
    yield from read_config(dataset, "pairs", Pair)


def read_rejections(dataset: Path) -> Iterator[Rejection]:
    """Every row of the config `rejected`, which may be missing. Raises: SchemaError."""
    return read_config(dataset, "rejected", Rejection)


def read_config(dataset: Path, name: str, kind: type[R]) -> Iterator[R]:
    """Every row of one config, which may be missing. Raises: SchemaError."""
    for shard in shards(dataset, name):
        yield from read_published(shard, kind)


def shards(dataset: Path, name: str) -> list[Path]:
    """The shards of one config, in their order."""
    return sorted((dataset / find_config(name).folder).glob("*.parquet"))


def find_row(dataset: Path, start: str) -> Pair | Rejection:
    """The row whose id starts with `start`, or whose module has that name; pairs come before rejected candidates.

    Raises: UserError: no row matches, or several do.
    """
    backward = read_config(dataset, "backward", TrainingPair)
    variants = read_config(dataset, "variants", Variant)
    for rows in (read_rows(dataset), backward, variants, read_rejections(dataset)):
        matches = [row for row in rows if row.id.startswith(start) or row.module_name == start]
        if len(matches) == 1:
            return matches[0]
        if matches:
            ids = ", ".join(row.id for row in matches[:5])
            raise UserError(f"{len(matches)} rows match {start}: give more of the id, such as one of {ids}")
    raise UserError(f"{dataset} has no row {start}: ids look like pair_0123456789abcdef or rej_0123456789abcdef")
