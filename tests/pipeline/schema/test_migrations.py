"""Published rows of every earlier version are read as rows of this version."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import make_pair

from kernelquarry.pipeline.schema.arrow import SchemaError, to_plain, write_shard
from kernelquarry.pipeline.schema.chats import Message
from kernelquarry.pipeline.schema.migrations import MIGRATIONS, read_published
from kernelquarry.pipeline.schema.records import (
    SCHEMA_VERSION,
    CallShape,
    Engine,
    Measures,
    Pair,
    Purity,
    TrainingPair,
    Variant,
)


def write(path: Path, rows: list[dict[str, Any]], version: int, record: type = Pair) -> None:
    metadata = {b"kernelquarry.record": record.__name__.encode(), b"kernelquarry.schema_version": str(version).encode()}
    pq.write_table(pa.Table.from_pylist(rows).replace_schema_metadata(metadata), path)


def version_1(pair: Pair) -> dict[str, Any]:
    row = to_plain(pair)
    del row["timings"], row["measures"], row["matched_problems"], row["constructor_general"]
    for name in ("engine", "written"):
        del row["verdict"][name]
    row["verdict"]["ghost_changed"] = True
    return {**row, "schema_version": 1}


def test_every_earlier_version_has_a_migration() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))


def test_version_1(tmp_path: Path) -> None:
    pure, mixed = make_pair(), make_pair(purity=Purity.MIXED)
    on_gpu = replace(pure.verdict, environment=replace(pure.verdict.environment, device="NVIDIA H100", driver="570"))
    executed = make_pair(verdict=on_gpu)
    write(tmp_path / "old.parquet", [version_1(pair) for pair in (pure, mixed, executed)], 1)
    first, second, third = read_published(tmp_path / "old.parquet", Pair)
    verdict = replace(pure.verdict, engine=Engine.INTERPRETER, written=1.0)
    assert first == replace(pure, verdict=verdict, timings=(), measures=Measures(), schema_version=SCHEMA_VERSION)
    assert second.verdict.written == 0
    assert third.verdict.engine is Engine.GUEST


def test_version_3(tmp_path: Path) -> None:
    """Unmeasured values become -1."""
    row = to_plain(make_pair())
    del row["measures"], row["matched_problems"], row["constructor_general"]
    write(tmp_path / "old.parquet", [{**row, "schema_version": 3}], 3)
    (found,) = read_published(tmp_path / "old.parquet", Pair)
    assert found == replace(make_pair(), measures=Measures())
    assert set(to_plain(found)["measures"].values()) == {-1}


def test_version_6(tmp_path: Path) -> None:
    """Kernels of earlier versions have constants for sizes that follow from the constructor."""
    row = to_plain(make_pair(constructor_general=True))
    del row["constructor_general"]
    write(tmp_path / "old.parquet", [{**row, "schema_version": 6}], 6)
    assert list(read_published(tmp_path / "old.parquet", Pair)) == [make_pair()]


@pytest.mark.parametrize("record", [Pair, TrainingPair, Variant])
def test_version_7(record: type[Pair], tmp_path: Path) -> None:
    """Verdicts of earlier versions have a mutation score."""
    row = to_plain(made := record(**{field.name: getattr(make_pair(), field.name) for field in fields(Pair)}))
    row["verdict"] |= {"mutants": 2, "survivors": ["line 3: a sum becomes a difference"]}
    write(tmp_path / "old.parquet", [{**row, "schema_version": 7}], 7, record)
    assert list(read_published(tmp_path / "old.parquet", record)) == [made]


def test_version_8(tmp_path: Path) -> None:
    """The shapes of calls are unknown in earlier rows."""
    row = to_plain(make_pair(shapes=(CallShape("", (2,), "float32"),)))
    del row["shapes"]
    write(tmp_path / "old.parquet", [{**row, "schema_version": 8}], 8)
    assert list(read_published(tmp_path / "old.parquet", Pair)) == [make_pair()]


@pytest.mark.parametrize("record", [Pair, TrainingPair, Variant])
def test_version_9(record: type, tmp_path: Path) -> None:
    """The shapes of calls in further workloads are unknown in earlier rows."""
    made = record(**{field.name: getattr(make_pair(), field.name) for field in fields(Pair)})
    made = replace(made, shapes=(CallShape("", (2,), "float32"),))
    row = to_plain(made)
    del row["shapes"][0]["further"]
    write(tmp_path / "old.parquet", [{**row, "schema_version": 9}], 9, record)
    assert list(read_published(tmp_path / "old.parquet", record)) == [made]


def test_this_version_is_read_as_it_is(tmp_path: Path) -> None:
    write_shard(tmp_path / "new.parquet", [make_pair()], Pair)
    assert list(read_published(tmp_path / "new.parquet", Pair)) == [make_pair()]


def test_a_later_version_is_rejected(tmp_path: Path) -> None:
    write(tmp_path / "later.parquet", [to_plain(make_pair())], SCHEMA_VERSION + 1)
    with pytest.raises(SchemaError, match=f"this release reads {SCHEMA_VERSION}"):
        read_published(tmp_path / "later.parquet", Pair)


def test_another_record_is_rejected(tmp_path: Path) -> None:
    write_shard(tmp_path / "other.parquet", [Message("user", "")], Message)
    with pytest.raises(SchemaError, match="it holds Message records"):
        read_published(tmp_path / "other.parquet", Pair)
