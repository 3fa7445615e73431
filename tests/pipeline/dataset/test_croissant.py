"""The Croissant metadata names and describes every shard and column.

`benchmarks/publishing.py` runs the format's own validator, in a separate environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from factories import make_pairs, make_rejection

from kernelquarry.pipeline.dataset.columns import meaning
from kernelquarry.pipeline.dataset.configs import CONFIGS
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.schema.arrow import schema_of

ROOT = Path(__file__).parents[2]
RESPONSIBLE = ("dataCollection", "dataLimitations", "dataBiases", "dataUseCases", "personalSensitiveInformation")


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    write_dataset(tmp_path, make_pairs(6, ("train", "test")), Rejected((make_rejection(),)), [], Build("My corpus", {}))
    found: dict[str, Any] = json.loads((tmp_path / "croissant.json").read_text())
    return found


def fields(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield field
    for part in field.get("subField", ()):
        yield from fields(part)


def test_every_shard_is_named_with_its_digest(document: dict[str, Any], tmp_path: Path) -> None:
    named = {file["contentUrl"]: file["sha256"] for file in document["distribution"] if "contentUrl" in file}
    shards = (path for path in (tmp_path / "data").rglob("*.parquet"))
    assert named == {
        path.relative_to(tmp_path).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in shards
    }


def test_every_config_that_has_rows_has_its_columns(document: dict[str, Any]) -> None:
    sets = {found["name"]: found for found in document["recordSet"]}
    assert list(sets) == ["pairs", "sft", "rl", "rejected"]
    for config in CONFIGS:
        if config.name in sets:
            assert [field["name"] for field in sets[config.name]["field"]] == schema_of(config.record).names
            assert all(field["description"] for field in sets[config.name]["field"])


def test_ids_are_unique_and_references_resolve(document: dict[str, Any]) -> None:
    files = [found["@id"] for found in document["distribution"]]
    every = [field for found in document["recordSet"] for top in found["field"] for field in fields(top)]
    ids = [*files, *(field["@id"] for field in every)]
    assert len(set(ids)) == len(ids)
    assert {field["source"]["fileSet"]["@id"] for field in every} <= set(files)
    assert all(("dataType" in field) != ("subField" in field) for field in every)


def test_it_has_the_fields_for_responsible_ai(document: dict[str, Any]) -> None:
    assert "http://mlcommons.org/croissant/RAI/1.0" in document["conformsTo"]
    assert all(len(document[f"rai:{name}"]) > 40 for name in RESPONSIBLE)
    assert document["name"] == "kernelquarry-my-corpus"


def test_every_column_of_every_config_has_a_meaning() -> None:
    missing = [
        (config.name, name)
        for config in CONFIGS
        for name in schema_of(config.record).names
        if not meaning(config.record, name)
    ]
    assert not missing
