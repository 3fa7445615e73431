"""What was taken out is published without its text, and the report says what found it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from factories import MODULE_CODE, make_module, make_probed
from typer.testing import CliRunner

from kernelquarry.pipeline.cli import app
from kernelquarry.pipeline.contaminated import contaminated, render_report
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.loss import Loss, Status
from kernelquarry.transforms.decontaminate import IndexFile, Rung, read_index
from kernelquarry.transforms.split.split import SPLITS

EVIDENCE = "renamed bench/1 1.00; minhash bench/1 0.80; minhash other/2 0.70"
KEPT = make_probed(make_module("x = 1"), cluster="clu_0")
TAKEN = make_probed(cluster="clu_1")
LOSSES = [
    Loss(TAKEN.id, "decontaminate", Status.DROPPED, "contaminated", EVIDENCE),
    Loss(KEPT.id, "decontaminate", Status.ERRORED, "ValueError", "renamed bench/1 1.00"),
]


def test_a_row_has_digests_and_no_text() -> None:
    (row,) = contaminated([KEPT, TAKEN], LOSSES)
    assert row.id == "con_" + TAKEN.id.removeprefix("mod_")
    assert row.code_sha256 == sha256(TAKEN.python_code)
    assert (row.rungs, row.problems, row.evidence) == (("minhash", "renamed"), ("bench/1", "other/2"), EVIDENCE)
    assert row.cluster == "clu_1" and row.split in SPLITS
    assert "class Model" not in repr(row)


def test_the_report_counts_by_rung() -> None:
    (row,) = contaminated([TAKEN], LOSSES)
    alone = replace(row, id="con_1", evidence="minhash bench/1 0.90")
    report = json.loads(render_report([asdict(IndexFile("bench", "place", 3, 2, "2.0"))], [row, alone]))
    assert report["benchmarks"][0]["problems"] == 3 and report["removed"] == 2
    assert report["rungs"]["minhash"] == {"hits": 3, "rows": 2, "alone": 1}
    assert report["rungs"]["renamed"] == {"hits": 1, "rows": 1, "alone": 0}
    assert set(report["rungs"]) == set(Rung) and report["by_benchmark"] == {"bench": 3, "other": 1}
    assert [entry["id"] for entry in report["rows"]] == [row.id, "con_1"]


def test_a_benchmark_is_indexed_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Scale.py").write_text(MODULE_CODE)
    (tmp_path / "level1" / "2_Broken.py").write_text(MODULE_CODE.replace("torch.relu", "torch.missing"))
    place = ["index-benchmarks", str(tmp_path), "--name", "bench", "--cache", str(tmp_path / "cache"), "--workers", "1"]
    ended = CliRunner().invoke(app, place)
    path = tmp_path / "cache" / "benchmarks" / "bench.index.jsonl"
    assert ended.exit_code == 0, ended.output
    assert f"{path}: 2 problems, 1 of which run" in ended.output
    about, problems = read_index(path)
    assert about.benchmark == "bench" and [problem.name for problem in problems] == [
        "level1/1_Scale",
        "level1/2_Broken",
    ]
    assert problems[0].fingerprint.paths["clamp_min"] == 1 and problems[0].fingerprint.behaviour
    assert problems[1].fingerprint.renamed and not problems[1].fingerprint.paths
