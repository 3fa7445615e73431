"""Published rows of earlier schema versions, read as rows of this one.

Shards of a run's stages are not migrated: a stage whose code has changed runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .arrow import check_record, from_plain, read_plain, read_records
from .records import SCHEMA_VERSION

T = TypeVar("T")
Plain = dict[str, Any]


def read_published(path: Path, cls: type[T]) -> Iterator[T]:
    """The records of a published shard of this schema version or an earlier one; `schema_version` is then this one.

    Raises: as `arrow.read_records`; SchemaError if the shard is of a later version.
    """
    version = check_record(path, cls)
    if version not in MIGRATIONS:
        return read_records(path, cls)
    return (from_plain(migrate(row, cls.__name__, version), cls) for row in read_plain(path))


def migrate(row: Plain, record: str, version: int) -> Plain:
    """A row of `version` as one of this version."""
    for step in range(version, SCHEMA_VERSION):
        row = MIGRATIONS[step](row, record)
    return {**row, "schema_version": SCHEMA_VERSION}


def _to_2(row: Plain, record: str) -> Plain:
    """Version 2 has timings, the engine, the score on mutants and the share of the outputs that kernels wrote.

    The share was not measured: it is 1 in every pure row, and 0 says that it is not known.
    """
    verdict = dict(row["verdict"])
    del verdict["ghost_changed"]
    interpreted = verdict["environment"]["device"] == "cpu-interpreter"
    verdict["engine"] = "interpreter" if interpreted else "guest"
    verdict["written"] = 1.0 if row["purity"] == "pure" else 0.0
    return {**row, "verdict": {**verdict, "mutants": 0, "survivors": []}, "timings": []}


def _to_3(row: Plain, record: str) -> Plain:
    """Version 3 says what a kernel needs of its sizes, how a model came to write it, what models said of it, and how it
    stands among others. Nothing was known to be needed before."""
    added: Plain = {"guards": [], "distillation": []} if record in ("Pair", "Rejection") else {}
    added |= {"explanations": [], "marks": []} if record == "Pair" else {}
    return {**row, **added}


def _to_4(row: Plain, record: str) -> Plain:
    """Version 4 has what the filters measured. It was not kept before."""
    if record not in ("Pair", "TrainingPair", "Variant"):
        return row
    unknown = {"computing_operators": -1, "characters": -1, "non_ascii": -1.0, "credentials": -1, "personal": -1}
    return {**row, "measures": unknown}


# Version -> a function from a row of it, and the name of its record, to a row of the next.
MIGRATIONS: Mapping[int, Callable[[Plain, str], Plain]] = {1: _to_2, 2: _to_3, 3: _to_4}
