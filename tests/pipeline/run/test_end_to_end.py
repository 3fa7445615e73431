"""The whole command on a small corpus, run as a user would run it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
import typer

from kernelquarry.pipeline.cli.app import app
from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.schema.arrow import read_records, write_shard
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Pair
from tests.pipeline.command import Built, Ended, dataset_bytes, run_program

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

NAMES = [stage.name for stage in STAGES]


def copy(built: Built, folder: Path) -> Path:
    """A copy of the run directory that a test may change."""
    shutil.copytree(built.root, folder / "run")
    return folder / "run"


def test_the_dataset_loads(built: Built, tmp_path: Path) -> None:
    assert built.ended.status == 0, built.ended.err
    loaded = datasets.load_dataset(str(built.root / "dataset"), "pairs", cache_dir=str(tmp_path))
    rows = [row for split in loaded.values() for row in split]
    assert {row["module_name"].replace("CopyOf", "") for row in rows} == {"Scale", "Distance"}
    assert len(rows) == 2
    for row in rows:
        assert {"interpreted", "compiled"} <= set(row["verdict"]["tiers"])
        assert "class ModelNew" in row["triton_code"] and "get_init_inputs" in row["python_code"]
        assert row["licence"]["spdx"] == "MIT"
    assert (built.root / "report.html").stat().st_size > 10_000


def test_the_summary_tells_what_there_is_and_where(built: Built) -> None:
    first, *places = built.ended.out.splitlines()
    assert first.startswith("2 verified pairs (") and "of 5 modules mined; ran read, mine," in first
    assert [place.split()[:2] for place in places[:3]] == [
        ["against", "kernelbench"],
        ["dataset", "out/layers/dataset"],
        ["report", "out/layers/report.html"],
    ]


def test_a_small_build_names_the_classes_without_a_pair(built: Built) -> None:
    _, _, rest = built.ended.out.partition("gave no pair; kernelquarry why NAME --run ")
    lost = [line.split(": ", 1) for line in rest.partition("\n\n")[0].splitlines()[1:]]
    assert dict(lost) == {
        "  Deep": "dropped by mine: syntax_error",
        "  CopyOfScale": "dropped by deduplicate: duplicate_renamed",
        "  Exits": "dropped by probe: no_workload",
        "  Noise": "dropped by probe: random",
        "  Old": "dropped by mine: syntax_error",
    }


def test_a_build_ends_with_a_pair_and_commands_that_run(built: Built, invoke: Callable[..., Ended]) -> None:
    _, _, end = built.ended.out.partition("one of the pairs:\n")
    shown, _, commands = end.partition("\ntry next:\n")
    (pair,) = (pair for pair in built.pairs() if pair.id in shown)
    assert "class Model(nn.Module)" in shown and "class ModelNew(nn.Module)" in shown and "worst error" in shown
    replay, why, dataset = (line.split("#")[0].split()[1:] for line in commands.splitlines())
    assert replay == ["replay", pair.id, "--dataset", "out/layers/dataset"]
    assert invoke(*why[:-1], built.root).status == 0
    assert dataset[0] == "dataset" and dataset[0] in COMMANDS


def test_counts_conserve_at_every_stage(built: Built) -> None:
    before = None
    for stage, manifest in zip(STAGES, built.manifests(), strict=True):
        for count in manifest.counts:
            assert count.entered == count.kept + count.total_dropped + count.total_errored
            assert count.total_errored == 0
        folder = built.root / "stages" / f"{STAGES.index(stage) + 1:02d}-{stage.name}"
        kept = sum(1 for path in folder.glob("kept-*.parquet") for _ in read_records(path, stage.output_type))
        lost = (
            sum(1 for _ in read_records(folder / "lost.parquet", DropRecord))
            if (folder / "lost.parquet").exists()
            else 0
        )
        assert kept == manifest.counts[-1].kept
        assert lost == sum(count.total_dropped for count in manifest.counts)
        assert before in (None, manifest.counts[0].entered)
        before = kept
    published = json.loads((built.root / "dataset" / "manifest.json").read_text())
    (verify,) = (count for manifest in built.manifests() for count in manifest.counts if count.stage == "verify")
    assert published["rejected"]["entered"] == verify.total_dropped
    assert sum(published["rows"]["pairs"].values()) == before


def test_what_is_lost_has_its_reason(built: Built) -> None:
    """Each bad file and module of the corpus costs only itself."""
    paths = (built.root / "stages").glob("*/lost.parquet")
    losses = [drop for path in paths for drop in read_records(path, DropRecord)]
    reasons = {drop.id.rpartition("/")[2]: drop.reason for drop in losses if drop.stage in ("read", "scan")}
    assert reasons == {
        "binary.py": "not_python",
        "latin.py": "undecodable",
        "large.py": "too_large",
    }
    classes = {loss.id.rpartition("/")[2]: loss.reason for loss in losses if loss.stage == "mine"}
    assert classes == {"python_2.py:Old": "syntax_error", "deep.py:Deep": "syntax_error"}
    assert sorted(loss.reason for loss in losses if loss.stage not in ("read", "scan", "mine")) == [
        "duplicate_renamed",
        "no_workload",
        "random",
    ]


def test_verbose_gives_a_line_a_decision(built: Built) -> None:
    lines = built.ended.err.splitlines()
    for count in (count for manifest in built.manifests() for count in manifest.counts):
        ends = [re.match(rf"{count.stage} \S+ (kept|dropped|errored)\b", line) for line in lines]
        assert sum(match is not None for match in ends) == count.entered
        assert sum(match is not None and match[1] == "kept" for match in ends) == count.kept
    assert any(re.match(r"read .*/large\.py dropped too_large: 10000000 bytes$", line) for line in lines)
    assert "apitools" not in built.ended.err and "Traceback" not in built.ended.err
    ended = [line for line in lines if " left: " not in line]  # which a slow machine says in between
    bars = sum(max(len(manifest.counts), 1) for manifest in built.manifests())
    assert len(ended) == sum(count.entered for m in built.manifests() for count in m.counts) + bars


def test_a_second_run_has_nothing_to_do(built: Built, tmp_path: Path) -> None:
    root = copy(built, tmp_path)
    manifests = {path: path.stat().st_mtime_ns for path in root.rglob("stage.json")}
    ended = run_program("dataset", built.folder / "layers", "--out", root, cwd=tmp_path)
    assert ended.status == 0
    assert "nothing to do" in ended.out
    assert ended.err == ""
    assert {path: path.stat().st_mtime_ns for path in root.rglob("stage.json")} == manifests
    assert dataset_bytes(root) == dataset_bytes(built.root)


def test_stages_run_one_by_one_give_the_same(built: Built, tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """Each stage has its own command. Stored results are not computed again."""
    root = tmp_path / "run"
    shutil.copytree(built.root / "store", root / "store")
    entries = {path: path.stat().st_ino for path in (root / "store").rglob("*.parquet")}
    for manifest, name in zip(built.manifests(), NAMES, strict=True):
        ended = invoke(name, root, *(("--corpus", built.folder / "layers") if name == "read" else ()))
        assert ended.status == 0
        assert ended.out.splitlines() == [count.summary() for count in manifest.counts]
        assert re.search(rf"^{name} ", ended.err, re.MULTILINE)
    assert invoke("split", root).out.splitlines()[-1] == "split: nothing to do"
    assert invoke("dataset", built.folder / "layers", "--out", root).status == 0
    assert dataset_bytes(root) == dataset_bytes(built.root)
    assert {path: path.stat().st_ino for path in (root / "store").rglob("*.parquet")} == entries


def test_replay_of_a_row(built: Built, invoke: Callable[..., Ended]) -> None:
    pair = built.pairs()[0]
    ended = invoke("replay", pair.id, "--dataset", built.root / "dataset")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == pair.id
    assert lines[-1].startswith("PASS: verified again")
    assert ended.err == f"verifying {pair.id} again: {len(pair.verdict.trials)} trials and further checks\n"
    assert sum("e-" in line for line in lines) >= len(pair.verdict.trials)


def test_reverify_finds_the_row_that_does_not_hold_and_goes_on(
    built: Built, tmp_path: Path, invoke: Callable[..., Ended]
) -> None:
    honest, other = built.pairs()
    wrong = {field: getattr(other, field) for field in other.__dataclass_fields__}
    wrong["triton_code"], changed = re.subn(r"(tl\.store\([^,]+, )", r"\g<1>2 * ", other.triton_code)
    assert changed
    write_shard(tmp_path / "data" / "pairs" / "train-00000-of-00001.parquet", [honest, Pair(**wrong)], Pair)
    results = tmp_path / "results.jsonl"
    for left in (2, 0):
        ended = invoke("reverify", tmp_path, "--results", results)
        assert ended.status == 1
        assert ended.out.splitlines()[-1] == "1 of 2 rows verified again"
        assert f"reverify     {left}" in ended.err
    assert f"reverify {other.id} errored NotVerified: wrong_values" not in ended.err  # said when it was found
    assert [json.loads(line)["held"] for line in results.read_text().splitlines()].count(False) == 1


def test_show(built: Built, invoke: Callable[..., Ended]) -> None:
    pair = built.pairs()[0]
    ended = invoke("show", pair.id[:12], "--dataset", built.root / "dataset")
    assert ended.status == 0
    for text in (pair.id, "PyTorch", "Triton", "MIT", *pair.kernels):
        assert text in ended.out


def test_funnel_fits_a_narrow_terminal(built: Built, invoke: Callable[..., Ended]) -> None:
    ended = invoke("funnel", built.root)
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line and line[0] != " "][: 3 + len(STAGES)] == [
        "stage", *(line for stage in STAGES for line, _ in stage.counted)
    ]  # fmt: skip
    assert any(re.match(r"  large\b|  too_large +1", line) for line in lines)
    assert any(re.match(r"random +two runs in eval mode gave", line) for line in lines)


def test_doctor(invoke: Callable[..., Ended]) -> None:
    ended = invoke("doctor")
    assert ended.status == 0
    for text in (
        "python",
        "torch",
        "free disk",
        "gpu",
        "seccomp",
        "open a TCP socket",
        "operation not permitted (EPERM)",
    ):
        assert text in ended.out
    assert ended.out.splitlines()[-1].startswith("READY: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, invoke: Callable[..., Ended]) -> None:
    ended = invoke(command, "--help")
    assert ended.status == 0
    usage = ended.out.strip().splitlines()
    assert f"kernelquarry {command}".split()[1] in usage[0]
    assert len(usage[2].strip()) >= 20  # what it is for


def test_help_names_every_command(invoke: Callable[..., Ended]) -> None:
    assert set(NAMES) | {"dataset", "show", "replay", "reverify", "funnel", "doctor"} <= set(COMMANDS)
    ended = invoke("--help")
    assert ended.status == 0
    assert all(re.search(rf"^│ {name} +\S", ended.out, re.MULTILINE) for name in COMMANDS)
