"""Corpora by name, file or URL on the command line; the run directory saves them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.run.stage_directory import LOST
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Module, SourceFile
from tests.pipeline.cli.test_bad_input import said
from tests.pipeline.command import Ended
from tests.pipeline.conftest import LAYERS
from tests.transforms.read.tables import STACK_V1, v1_row, write_table

Invoke = Callable[..., Ended]


def kept(root: Path, stage: str, kind: type) -> list:
    index = next(i for i, s in enumerate(STAGES, 1) if s.name == stage)
    return [r for path in (root / "stages" / f"{index:02d}-{stage}").glob("kept-*") for r in read_records(path, kind)]


def test_rows_of_a_repository_are_one_tree(tmp_path: Path, invoke: Invoke) -> None:
    """Rows may be in any file and order. Of two rows with one path, the first counts."""
    base = "import torch\n\n\nclass Base(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    net = "import torch\nfrom .base import Base\n\n\nclass Net(Base):\n    pass\n"
    rows = [v1_row("pkg/base.py", base), *[v1_row(f"{i}.py", "x = 1\n", "a/b") for i in range(10)]]
    write_table(tmp_path / "0.parquet", STACK_V1, rows, group=4)
    write_table(tmp_path / "1.parquet", STACK_V1, [v1_row("pkg/net.py", net), v1_row("pkg/base.py", base + "\n")])
    root = tmp_path / "out"
    for stage in ("read", "mine"):
        assert invoke(stage, root, "--corpus", tmp_path / "*.parquet").status == 0
    net_module = next(module for module in kept(root, "mine", Module) if module.name == "Net")
    assert net_module.imported_files == ("pkg/base.py",)
    assert "x + 1" in net_module.code
    (mine,) = root.glob("stages/*-mine")
    lost = [loss for loss in read_records(mine / LOST, DropRecord) if loss.reason == "duplicate_path"]
    assert [loss.id for loss in lost] == ["someone/layers@" + "c" * 40 + "/pkg/base.py"]
    assert len([module for module in kept(root, "mine", Module) if module.name == "Base"]) == 1


def test_opted_out_sources_are_not_read(tmp_path: Path, invoke: Invoke) -> None:
    rows = [v1_row("a.py", LAYERS, "shy/layers"), v1_row("a.py", LAYERS, "open/layers")]
    table = write_table(tmp_path / "layers.parquet", STACK_V1, rows)
    root, listed = tmp_path / "out", tmp_path / "listed"
    listed.write_text("repository shy/*\n")
    assert invoke("read", root, "--corpus", table, "--opt-out", listed).status == 0
    listed.unlink()
    assert [file.source.package for file in kept(root, "read", SourceFile)] == ["open/layers"]
    assert "nothing to do" in invoke("read", root).out  # the run remembers the list
    (root / "opt-out.txt").write_text("")
    assert "nothing to do" not in invoke("read", root).out
    assert len(kept(root, "read", SourceFile)) == 2


def test_an_invalid_opt_out_list(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "listed").write_text("shy/layers\n")
    ended = invoke("read", tmp_path / "out", "--corpus", "tiny", "--opt-out", tmp_path / "listed")
    assert "listed, line 1: expected `repository owner/name`" in said(ended)


def test_compositions(tmp_path: Path, invoke: Invoke) -> None:
    root = tmp_path / "out"
    for stage in ("read", "mine"):
        assert invoke(stage, root, "--corpus", "compose:24:5").status == 0
    assert json.loads((root / "run.json").read_text())["corpus"] == "compose:24:5"
    modules = kept(root, "mine", Module)
    assert len(modules) == 24
    assert all(module.source.package == "compose" and module.licence.spdx == "Apache-2.0" for module in modules)
    (manifest,) = (StageManifest.read(path) for path in root.glob("stages/*-read/stage.json"))
    assert manifest is not None
    assert manifest.inputs["compose"] == "24 of seed 5"


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ("cut.parquet", "cut.parquet: cannot be read"),
        ("cut.jsonl", "cut.jsonl: byte 0: the file ends inside a row"),
        ("no.jsonl", "no.jsonl: no such file"),
        ("bare.jsonl", "no column holds the licence"),
        ("compose:none", "give compose:NUMBER"),
        ("the-stack", "the Hub is switched off by HF_HUB_OFFLINE"),
    ],
)
def test_unreadable_sources_are_one_line(
    corpus: str, message: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "cut.jsonl").write_text('{"text": "impo')
    (tmp_path / "bare.jsonl").write_text('{"text": "import torch"}\n')
    assert message in said(invoke("dataset", corpus, "--out", tmp_path / "out"))
