"""Shards: names and bytes follow from the rows alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from factories import make_pair, make_pairs

from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.records import Pair

PAIRS = Path("data/pairs")
SPLITS = ("train", "train", "validation", "test")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_are_sorted_and_cut(tmp_path: Path) -> None:
    pairs = make_pairs(10, SPLITS)
    shards = write_rows(tmp_path, PAIRS, Pair, pairs, rows_per_shard=4)
    names = {split: [path.name for path in paths] for split, paths in shards.items()}
    assert names == {
        "train": ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"],
        "validation": ["validation-00000-of-00001.parquet"],
        "test": ["test-00000-of-00001.parquet"],
    }
    for split, paths in shards.items():
        rows = [row for path in paths for row in read_records(tmp_path / path, Pair)]
        assert rows == sorted((pair for pair in pairs if pair.split == split), key=lambda pair: pair.id)


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path) -> None:
    pairs = make_pairs(10, SPLITS)
    write_rows(tmp_path / "a", PAIRS, Pair, pairs, rows_per_shard=4)
    write_rows(tmp_path / "b", PAIRS, Pair, reversed(pairs), rows_per_shard=4)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_an_earlier_build_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "data/pairs"
    write_rows(tmp_path, PAIRS, Pair, make_pairs(10, SPLITS), rows_per_shard=2)
    (folder / ".train-00000-of-00001.parquet.0123.tmp").write_bytes(b"half")
    write_rows(tmp_path, PAIRS, Pair, make_pairs(3))
    assert [path.name for path in folder.iterdir()] == ["train-00000-of-00001.parquet"]


def test_no_rows_no_shards(tmp_path: Path) -> None:
    write_rows(tmp_path, PAIRS, Pair, make_pairs(3))
    assert write_rows(tmp_path, PAIRS, Pair, []) == {}
    assert list((tmp_path / "data/pairs").iterdir()) == []


def test_a_pair_without_a_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has the split ''"):
        write_rows(tmp_path, PAIRS, Pair, [*make_pairs(1), replace(make_pair(), split="")])
