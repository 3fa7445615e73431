"""Records survive a round trip through Arrow and parquet, and readers reject everything else."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelquarry.pipeline.schema import arrow
from kernelquarry.pipeline.schema.arrow import SchemaError, read_records, write_shard
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Errored, Status
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import (
    SCHEMA_VERSION,
    Lowered,
    Module,
    Pair,
    Probed,
    Rejection,
    SourceFile,
    Verified,
)
from tests.factories import make_example, make_pair

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
}


def records_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field type, down to the leaves."""
    if hint in SCALARS:
        return SCALARS[hint]
    if get_origin(hint) is tuple:
        return st.lists(records_of(get_args(hint)[0]), max_size=2).map(tuple)
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{f.name: records_of(hints[f.name]) for f in dataclasses.fields(hint)})
    return st.sampled_from(hint)


SAMPLE = [
    DropRecord("mod_1", "verify", Status.DROPPED, "wrong_values", "3.5"),
    DropRecord("mod_2", "verify", Status.ERRORED, "OSError", "no"),
]


@pytest.mark.parametrize("cls", [SourceFile, Module, Probed, Lowered, Verified, Pair, Rejection, DropRecord])
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_table_round_trip(cls: type, data: st.DataObject) -> None:
    records = data.draw(st.lists(records_of(cls), max_size=3))
    assert [arrow.from_plain(row, cls) for row in arrow.to_table(records, cls).to_pylist()] == records


def test_nan_and_infinity_survive() -> None:
    (row,) = arrow.to_table([Measured((math.nan, math.inf, -math.inf))], Measured).to_pylist()
    back = arrow.from_plain(row, Measured)
    assert math.isnan(back.values[0]) and back.values[1:] == (math.inf, -math.inf)


def test_shard_round_trip_keeps_order(tmp_path) -> None:
    path = tmp_path / "deep" / "losses.parquet"
    write_shard(path, SAMPLE[::-1], DropRecord)
    assert list(read_records(path, DropRecord)) == SAMPLE[::-1]
    assert arrow.count_records(path, DropRecord) == 2


def test_an_entry_is_a_smaller_shard_of_one(tmp_path) -> None:
    pair = make_pair()
    arrow.write_entry(tmp_path / "entry.parquet", pair)
    write_shard(tmp_path / "shard.parquet", [pair], Pair)
    assert list(read_records(tmp_path / "entry.parquet", Pair)) == [pair]
    assert (tmp_path / "entry.parquet").stat().st_size < 0.7 * (tmp_path / "shard.parquet").stat().st_size


def test_shard_of_nothing(tmp_path) -> None:
    write_shard(tmp_path / "empty.parquet", [], Pair)
    assert list(read_records(tmp_path / "empty.parquet", Pair)) == []


def test_several_row_groups(tmp_path) -> None:
    many = [
        DropRecord(f"mod_{i}", "probe", Status.DROPPED, "random", str(i)) for i in range(2 * arrow.ROWS_PER_GROUP + 1)
    ]
    write_shard(tmp_path / "many.parquet", many, DropRecord)
    assert pq.read_metadata(tmp_path / "many.parquet").num_row_groups == 3
    assert list(read_records(tmp_path / "many.parquet", DropRecord)) == many
    for start, stop in ((0, 3), (248, 252), (250, 500), (499, 10_000), (501, 502)):
        assert list(read_records(tmp_path / "many.parquet", DropRecord, start, stop)) == many[start:stop]


def test_enums_come_back_as_enums(tmp_path) -> None:
    write_shard(tmp_path / "a.parquet", SAMPLE, DropRecord)
    assert [type(loss.status).__name__ for loss in read_records(tmp_path / "a.parquet", DropRecord)] == ["Status"] * 2


def test_same_records_same_bytes(tmp_path) -> None:
    write_shard(tmp_path / "a.parquet", SAMPLE, DropRecord)
    write_shard(tmp_path / "b.parquet", iter(SAMPLE), DropRecord)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_no_column_is_nullable() -> None:
    def leaves(type_: pa.DataType):
        for i in range(type_.num_fields):
            yield type_.field(i)
            yield from leaves(type_.field(i).type)

    assert not [f for f in leaves(pa.struct(list(arrow.schema_of(Pair)))) if f.nullable]


def test_failed_write_leaves_the_old_shard_and_no_litter(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    write_shard(path, SAMPLE, DropRecord)
    before = path.read_bytes()
    with pytest.raises(AttributeError):
        write_shard(path, [SAMPLE[0], "not a record"], DropRecord)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_shard_is_rejected_at_once(tmp_path, share: float) -> None:
    path = tmp_path / "a.parquet"
    write_shard(path, SAMPLE, DropRecord)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(SchemaError, match="not a complete parquet file") as caught:
        read_records(path, DropRecord)
    assert str(path) in str(caught.value) and "run the stage" in str(caught.value)


def test_flipped_bits_in_a_page_are_found(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    write_shard(path, SAMPLE, DropRecord)
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(4)  # `evidence`, the last one: its chunk ends with its page
    data[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 0x01
    path.write_bytes(data)
    with pytest.raises(SchemaError, match="damaged data"):
        list(read_records(path, DropRecord))


def test_another_record_is_rejected(tmp_path) -> None:
    write_shard(tmp_path / "a.parquet", SAMPLE, DropRecord)
    with pytest.raises(SchemaError, match=r"holds DropRecord records.*shard of Pair"):
        read_records(tmp_path / "a.parquet", Pair)


def test_another_schema_version_is_rejected(tmp_path, monkeypatch) -> None:
    write_shard(tmp_path / "a.parquet", SAMPLE, DropRecord)
    monkeypatch.setattr(arrow, "SCHEMA_VERSION", 99)
    with pytest.raises(SchemaError, match=f"schema version {SCHEMA_VERSION}, this release reads 99"):
        read_records(tmp_path / "a.parquet", DropRecord)
    with pytest.raises(SchemaError, match=f"schema version {SCHEMA_VERSION}, this release reads 99"):
        arrow.count_records(tmp_path / "a.parquet", DropRecord)


def test_foreign_parquet_is_rejected(tmp_path) -> None:
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="not written by kernelquarry"):
        read_records(tmp_path / "a.parquet", DropRecord)


def test_other_columns_under_the_right_name_are_rejected(tmp_path) -> None:
    pq.write_table(arrow.to_table(SAMPLE, DropRecord).drop_columns(["evidence"]), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="columns are not those of DropRecord"):
        read_records(tmp_path / "a.parquet", DropRecord)


def test_a_type_outside_the_table_is_rejected() -> None:
    with pytest.raises(TypeError, match="cannot have the type"):
        arrow.schema_of(Bag)


def test_drop_records_give_their_outcomes_back() -> None:
    dropped = Dropped("mod_1", Reason.WRONG_VALUES, "3.5", (make_example(),))
    errored = Errored("mod_2", "OSError", "disk")
    assert DropRecord.of("verify", dropped).outcome == dropped
    assert DropRecord.of("verify", errored).outcome == errored


@dataclass(frozen=True, slots=True)
class Measured:
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bag:
    metadata: dict[str, str]
