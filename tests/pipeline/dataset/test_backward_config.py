"""The config `backward` of a run with pairs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import datasets

from kernelquarry.pipeline.dataset.rows import read_config
from kernelquarry.pipeline.schema.records import TrainingPair
from tests.pipeline.command import Built, Ended, dataset_bytes


def test_backward_rows_are_published_with_the_pairs(built: Built, tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    root = tmp_path / "run"
    shutil.copytree(built.root, root)
    assert not (root / "dataset/data/backward").exists()
    ended = invoke("backward", root)
    assert ended.status == 0, ended.err
    (line, *_) = ended.out.splitlines()
    assert line.startswith("backward") and "errored" not in line.replace("0 errored", "")
    ended = invoke("dataset", built.folder / "layers", "--out", root)
    assert ended.status == 0, ended.err
    assert "nothing to do" in ended.out

    rows = list(read_config(root / "dataset", "backward", TrainingPair))
    assert {row.module_name.replace("CopyOf", "") for row in rows} == {"Scale", "Distance"}
    assert all("torch.autograd.Function" in row.triton_code and row.split for row in rows)
    splits = {pair.source.sha256 + pair.module_name: pair.split for pair in built.pairs()}
    assert all(splits[row.source.sha256 + row.module_name] == row.split for row in rows)
    loaded = datasets.load_dataset(str(root / "dataset"), "backward", cache_dir=str(tmp_path / "cache"))
    assert sorted(row["id"] for split in loaded.values() for row in split) == sorted(row.id for row in rows)

    before, after = dataset_bytes(built.root), dataset_bytes(root)
    pairs = {name: data for name, data in before.items() if "data/pairs" in name}
    assert pairs and all(after[name] == data for name, data in pairs.items())
    funnel = json.loads((root / "dataset/manifest.json").read_text())["funnel"]
    assert [count["stage"] for count in funnel].count("backward") == 1
    assert invoke("replay", rows[0].id, "--dataset", root / "dataset").status == 0
