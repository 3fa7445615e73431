"""Migrations of published rows from earlier schema versions to this one.

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
    """The records of a published shard of this schema version or an earlier one, with `schema_version` set to this one.

    Raises: as `arrow.read_records`; SchemaError if the shard is of a later version.
    """
    version = check_record(path, cls)
    if version not in MIGRATIONS:
        return read_records(path, cls)
    return (from_plain(migrate(row, cls.__name__, version), cls) for row in read_plain(path))


def migrate(row: Plain, record: str, version: int) -> Plain:
    """A row of schema version `version`, migrated to this version."""
    for step in range(version, SCHEMA_VERSION):
        row = MIGRATIONS[step](row, record)
    return {**row, "schema_version": SCHEMA_VERSION}


def _to_2(row: Plain, record: str) -> Plain:
    """Version 2 adds timings, the engine, the mutant score and the share of the outputs that kernels wrote.

    Version 1 did not measure that share: it is 1 for pure rows by definition, and 0 means unknown.
    """
    verdict = dict(row["verdict"])
    del verdict["ghost_changed"]
    interpreted = verdict["environment"]["device"] == "cpu-interpreter"
    verdict["engine"] = "interpreter" if interpreted else "guest"
    verdict["written"] = 1.0 if row["purity"] == "pure" else 0.0
    return {**row, "verdict": {**verdict, "mutants": 0, "survivors": []}, "timings": []}


def _to_3(row: Plain, record: str) -> Plain:
    """Version 3 adds guards, distillation, explanations and marks, which are empty in earlier rows."""
    added: Plain = {"guards": [], "distillation": []} if record in ("Pair", "Rejection") else {}
    added |= {"explanations": [], "marks": []} if record == "Pair" else {}
    return {**row, **added}


def _to_4(row: Plain, record: str) -> Plain:
    """Version 4 adds the filters' measurements; -1 means unknown."""
    if record not in ("Pair", "TrainingPair", "Variant"):
        return row
    unknown = {"computing_operators": -1, "characters": -1, "non_ascii": -1.0, "credentials": -1, "personal": -1}
    return {**row, "measures": unknown}


def _to_5(row: Plain, record: str) -> Plain:
    """Version 5 adds the origin of slices, which earlier rows are not, and measurements of difficulty; -1: unknown."""
    if record not in ("Pair", "TrainingPair", "Variant", "Rejection"):
        return row
    row = {**row, "slice_of": []}
    if record == "Rejection":
        return row
    return {**row, "measures": {**row["measures"], "operators": -1, "depth": -1, "kernels": -1, "tokens": -1}}


def _to_6(row: Plain, record: str) -> Plain:
    """Version 6 adds the problems that a row matches. A default build kept no such row."""
    return {**row, "matched_problems": []} if record in ("Pair", "TrainingPair", "Variant") else row


def _to_7(row: Plain, record: str) -> Plain:
    """Version 7 adds whether a kernel is right for other arguments of the constructor; earlier kernels are not."""
    return {**row, "constructor_general": False} if record in ("Pair", "TrainingPair", "Variant") else row


def _to_8(row: Plain, record: str) -> Plain:
    """Version 8 drops the mutation score of the verdict, and adds whether a kernel is inside of the language."""
    if record not in ("Pair", "TrainingPair", "Variant"):
        return row
    kept = {name: value for name, value in row["verdict"].items() if name not in ("mutants", "survivors")}
    return {**row, "verdict": kept, "measures": {**row["measures"], "inside": -1}}


def _to_9(row: Plain, record: str) -> Plain:
    """Version 9 adds the shapes of calls, which are unknown in earlier rows."""
    return {**row, "shapes": []} if record in ("Pair", "TrainingPair", "Variant", "Rejection") else row


def _to_10(row: Plain, record: str) -> Plain:
    """Version 10 adds the shapes of calls in further workloads, which are unknown in earlier rows."""
    if record not in ("Pair", "TrainingPair", "Variant", "Rejection"):
        return row
    return {**row, "shapes": [{**each, "further": []} for each in row["shapes"]]}


# Version -> function that migrates a row, given the name of its record, to the next version.
MIGRATIONS: Mapping[int, Callable[[Plain, str], Plain]] = {
    1: _to_2,
    2: _to_3,
    3: _to_4,
    4: _to_5,
    5: _to_6,
    6: _to_7,
    7: _to_8,
    8: _to_9,
    9: _to_10,
}
