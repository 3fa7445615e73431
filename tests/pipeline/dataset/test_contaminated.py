"""Dropped modules are published without text, and the report lists the matching rungs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import MODULE_CODE, TRITON_CODE, make_module, make_pairs, make_probed
from typer.testing import CliRunner

from kernelquarry.pipeline.cli.app import app
from kernelquarry.pipeline.dataset import contaminated as pages
from kernelquarry.pipeline.dataset.contaminated import contaminated, describe_benchmarks, removed
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.report.report import render_report
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import DropRecord, Status
from kernelquarry.transforms.decontaminate import IndexFile, Origin, Rung, fingerprint_of, problems_of, read_index
from kernelquarry.transforms.decontaminate.build_index import index_benchmark
from kernelquarry.transforms.split.assign_split import SPLITS
from tests.hub_double import HubDouble
from tests.pipeline.command import run

EVIDENCE = "source bench/1 1.00; ngrams bench/1 0.80; ngrams other/2 0.70"
KEPT = make_probed(make_module("x = 1"), cluster="clu_0")
TAKEN = make_probed(cluster="clu_1")
LOSSES = [
    DropRecord(TAKEN.id, "decontaminate", Status.DROPPED, "contaminated", EVIDENCE),
    DropRecord(KEPT.id, "decontaminate", Status.ERRORED, "ValueError", "source bench/1 1.00"),
]


def test_a_row_has_digests_and_no_text() -> None:
    (row,) = contaminated([KEPT, TAKEN], LOSSES)
    assert row.id == "con_" + TAKEN.id.removeprefix("mod_")
    assert row.code_sha256 == sha256(TAKEN.python_code)
    assert (row.rungs, row.problems, row.evidence) == (("ngrams", "source"), ("bench/1", "other/2"), EVIDENCE)
    assert row.cluster == "clu_1" and row.split in SPLITS
    assert "class Model" not in repr(row)


def test_the_report_counts_by_rung() -> None:
    (row,) = contaminated([TAKEN], LOSSES)
    alone = replace(row, id="con_1", evidence="ngrams bench/1 0.90")
    report = json.loads(
        pages.render_report([asdict(IndexFile("bench", "place", "", "", 3, 2, "2.0", ""))], [row, alone])
    )
    assert report["benchmarks"][0]["problems"] == 3 and report["removed"] == 2
    assert report["rungs"]["ngrams"] == {"hits": 3, "rows": 2, "alone": 1}
    assert report["rungs"]["source"] == {"hits": 1, "rows": 1, "alone": 0}
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
    assert problems[0].fingerprint.signatures and problems[0].fingerprint.behaviours
    assert problems[1].fingerprint.source and not problems[1].fingerprint.signatures
    assert "the index of bench has 2 problems" in ended.output, "a warning: every benchmark of kernels has more"


def test_a_dataset_of_the_hub_is_indexed_by_one_command(
    hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dataset has KernelBench's columns, and one split for each level."""
    for name, value in (("HF_HOME", str(tmp_path / "home")), ("HF_ENDPOINT", hub.url), ("HF_HUB_OFFLINE", "0")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "0")
    rows = [{"code": MODULE_CODE, "level": 1, "name": "1_Scale", "problem_id": 1}]
    hub.add("tester/Bench", {"data/level_1-00000-of-00001.parquet": parquet(rows), "README.md": b"# Bench\n"})
    ended = run(
        "index-benchmarks", "tester/Bench", "--name", "bench", "--to", tmp_path / "i", "--workers", "1", cwd=tmp_path
    )
    assert ended.status == 0, ended.err
    assert "1 problems, 1 of which run" in ended.out
    assert [problem.id for problem in read_index(tmp_path / "i")[1]] == ["bench/level1/1_Scale"]


def parquet(rows: list[dict[str, object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


def test_kernels_are_indexed_by_their_text(tmp_path: Path) -> None:
    listed = [{"file": "scale.py", "output": f"import torch\n{TRITON_CODE}"}]
    (tmp_path / "TritonBench_G_v1.json").write_text(json.dumps(listed))
    settings = SandboxSettings(workers=1)
    about = index_benchmark(Origin("g", "place"), str(tmp_path), tmp_path / "i", settings, lambda found: found)
    assert (about.problems, about.ran) == (1, 0)
    (problem,) = read_index(tmp_path / "i")[1]
    expected = problems_of("g", {"TritonBench_G_v1/scale": fingerprint_of(listed[0]["output"])})
    assert problem == expected[0] and problem.fingerprint.runs


def test_the_pages_name_the_compared_benchmarks(tmp_path: Path) -> None:
    """Without benchmarks, the pages say so."""
    about = asdict(IndexFile("kernelbench", "owner/KernelBench", "1a2b3c4d5e", "MIT", 250, 249, "2.13.0", ""))
    said = {}
    for name, benchmarks in (("compared", (about,)), ("not", ())):
        write_dataset(tmp_path / name, make_pairs(3), Rejected(), [], Build("tiny", {}, benchmarks=benchmarks))
        found = removed([TAKEN], LOSSES) if benchmarks else ()
        page = render_report("tiny", make_pairs(3), [], [], None, describe_benchmarks(benchmarks), found)
        said[name] = ((tmp_path / name / "README.md").read_text(), page)
    for text in said["compared"]:
        expected = (
            "econtaminated against kernelbench (250 problems, of which 249 ran; owner/KernelBench at 1a2b3c4, MIT)"
        )
        assert expected in text and "Not d" not in text
    assert "1 modules overlap a problem" in said["compared"][1]
    assert 'other/2 <span class="soft">ngrams 0.70</span>' in said["compared"][1], "problem, rung and measure"
    for text in said["not"]:
        assert "Not decontaminated" in text and "econtaminated against" not in text


def test_a_dataset_with_copies_of_single_operators_says_so(tmp_path: Path) -> None:
    about = asdict(IndexFile("kernelbench", "owner/KernelBench", "1a2b3c4d5e", "MIT", 250, 249, "2.13.0", ""))
    for name, least, is_labelled in (("default", 1, False), ("training", 2, True)):
        build = Build("tiny", {}, benchmarks=(about,), settings={"decontaminate": {"least_operators": least}})
        first, *others = make_pairs(3)
        labelled = replace(first, matched_problems=("kernelbench/level1/19_ReLU",))
        write_dataset(tmp_path / name, [labelled, *others] if is_labelled else [first, *others], Rejected(), [], build)
        assert ("**For training only**" in (tmp_path / name / "README.md").read_text()) == is_labelled
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        assert manifest["build"]["settings"]["decontaminate"]["least_operators"] == least
    assert "In 1 pairs, `matched_problems` names" in (tmp_path / "training" / "README.md").read_text()
