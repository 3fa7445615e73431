"""The config `variants` of a run with pairs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kernelquarry.pipeline.dataset.rows import find_row, read_config
from kernelquarry.pipeline.schema.records import Variant
from tests.pipeline.command import Built, Ended, dataset_bytes


def test_variants_are_published_with_the_pairs(built: Built, tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    root = tmp_path / "run"
    shutil.copytree(built.root, root)
    for kind in ("float16", "autotuned"):
        ended = invoke(kind, root)
        assert ended.status == 0, ended.err
        (line, *_) = ended.out.splitlines()
        assert line.startswith(kind) and "errored" not in line.replace("0 errored", "")
    ended = invoke("dataset", built.folder / "layers", "--out", root)
    assert ended.status == 0, ended.err
    assert "nothing to do" in ended.out

    rows = list(read_config(root / "dataset", "variants", Variant))
    assert {(row.dtype, row.autotuned) for row in rows} == {("float16", False), ("float32", True)}
    assert all("triton.autotune" in row.triton_code for row in rows if row.autotuned)
    splits = {pair.source.sha256 + pair.module_name: pair.split for pair in built.pairs()}
    assert all(splits[row.source.sha256 + row.module_name] == row.split for row in rows)
    assert find_row(root / "dataset", rows[0].id) == rows[0]

    before, after = dataset_bytes(built.root), dataset_bytes(root)
    pairs = {name: data for name, data in before.items() if "data/pairs" in name}
    assert pairs and all(after[name] == data for name, data in pairs.items())
    assert invoke("replay", rows[0].id, "--dataset", root / "dataset").status == 0
