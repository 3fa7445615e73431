"""Merging the parts of several machines gives the same bytes as one machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelquarry.pipeline.run import build
from kernelquarry.pipeline.run.execute_stage import write_sorted
from kernelquarry.pipeline.run.stage_directory import MANIFEST, StageDirectory
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.outcome import DropRecord, Errored
from kernelquarry.pipeline.schema.parts import Part
from kernelquarry.pipeline.schema.records import Module, Probed, SourceFile
from tests.pipeline.cli.test_bad_input import said
from tests.pipeline.command import Built, Ended
from tests.transforms.read.tables import STACK_V1, v1_row, write_table

Invoke = Callable[..., Ended]
SHARED = "import torch\n\n\nclass Shared(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
OWN = "\n\nclass Own(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x) * {number}\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Tables of five repositories: one module is in all of them, and each has one further module."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for n in range(5):
        rows = [v1_row("net.py", SHARED + OWN.format(number=n + 2), f"somebody/layers{n}")]
        write_table(folder / f"{n}.parquet", STACK_V1, rows)
    return folder / "*.parquet"


def shards(root: Path, stage: str) -> dict[str, bytes]:
    (folder,) = root.glob(f"stages/*-{stage}")
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_parts_of_several_machines_are_the_whole(corpus: Path, tmp_path: Path, invoke: Invoke) -> None:
    whole, one, two = (tmp_path / name for name in ("whole", "one", "two"))
    assert invoke("read", whole, "--corpus", corpus).status == 0
    assert invoke("read", one, "--corpus", corpus, "--part", "1/2").status == 0
    assert invoke("read", two, "--corpus", corpus, "--part", "2/2").status == 0
    assert "read: 1 of 2 parts are here and fit: run `kernelquarry read --part 2/2`" in said(invoke("merge", one))
    assert invoke("merge", one, two).out == "merged read\n"
    assert shards(one, "read") == shards(whole, "read")
    assert invoke("merge", two, one).status == 0  # the finished stage is taken over
    mined = invoke("mine", whole).out
    for root, part in ((one, "1/3"), (two, "2/3"), (one, "3/3")):
        assert invoke("mine", root, "--part", part).status == 0
    assert invoke("merge", one, two).out == "merged mine\n"
    assert shards(one, "mine") == shards(whole, "mine")  # the module that parts share is kept once, as in the whole
    (folder,) = whole.glob("stages/*-mine")
    assert [loss.reason for loss in read_records(folder / "lost.parquet", DropRecord)] == ["duplicate_source"] * 4
    again = invoke("mine", one).out
    assert again == mined + "mine: nothing to do\n"


def test_parts_go_through_later_stages_before_they_are_merged(built: Built, tmp_path: Path, invoke: Invoke) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    expected = {stage: shards(built.root, stage) for stage in ("lower", "tidy")}
    for root, part in ((one, "1/2"), (two, "2/2")):
        shutil.copytree(built.root, root)
        for stage in ("lower", "tidy"):
            (folder,) = root.glob(f"stages/*-{stage}")
            shutil.rmtree(folder)
            assert invoke(stage, root, "--part", part).status == 0
    assert "lower: 1 of 2 parts are here and fit" in said(invoke("merge", one))
    assert invoke("merge", one, two).out.splitlines()[0] == "merged lower, tidy"
    assert {stage: shards(one, stage) for stage in expected} == expected


def test_a_part_of_a_part_that_does_not_fit_is_not_merged(built: Built, tmp_path: Path, invoke: Invoke) -> None:
    root = tmp_path / "run"
    shutil.copytree(built.root, root)
    for stage in ("lower", "tidy"):
        (folder,) = root.glob(f"stages/*-{stage}")
        shutil.rmtree(folder)
        for part in ("1/2", "2/2"):
            assert invoke(stage, root, "--part", part).status == 0
    (manifest,) = root.glob("parts/*-lower.2-of-2/stage.json")
    manifest.write_text(manifest.read_text().replace('"inputs": {', '"inputs": {"other": "0",'))
    assert "lower: 1 of 2 parts are here and fit" in said(invoke("merge", root))


def test_a_part_needs_only_the_shards_that_may_hold_its_records(
    corpus: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "RECORDS_PER_SHARD", 2)
    root = tmp_path / "run"
    assert invoke("read", root, "--corpus", corpus).status == 0
    assert invoke("mine", root).status == 0
    (folder,) = root.glob("stages/*-mine")
    first, *others = sorted(folder.glob("kept-*"))
    number = int(first.stem.rpartition("-")[2])
    for path in others:
        path.unlink()
    held = {module.id for module in read_records(first, Module)}
    assert invoke("probe", root, "--part", f"1/{number}").status == 0
    kept = [read_records(path, Probed) for path in root.glob("parts/*-probe.*/kept-*")]
    assert {probed.module.id for records in kept for probed in records} == held
    assert "missing or changed" in said(invoke("probe", root, "--part", f"2/{number}"))


@pytest.mark.parametrize("shards", [1, 4, 6, 9])
@pytest.mark.parametrize("of", [1, 2, 3, 6])
def test_all_records_of_a_part_are_in_the_shards_that_it_meets(shards: int, of: int) -> None:
    for part in (Part(number, of) for number in range(1, of + 1)):
        assert all(part.meets(number % shards, shards) for number in range(200) if part.holds(number))


def test_a_part_with_records_that_errored_is_merged_and_not_made_again(
    corpus: Path, tmp_path: Path, invoke: Invoke
) -> None:
    one = tmp_path / "one"
    for part in ("1/2", "2/2"):
        assert invoke("read", one, "--corpus", corpus, "--part", part).status == 0
    directory = StageDirectory(one / "parts" / "01-read.1-of-2")
    manifest, (shard,) = StageManifest.read(directory.path / MANIFEST), directory.kept
    assert manifest is not None
    *files, last = read_records(shard, SourceFile)
    write_sorted(shard, files, SourceFile)
    write_sorted(directory.lost, [DropRecord.of("read", Errored(last.id, "OSError", "disk"))], DropRecord)
    counts = replace(manifest.counts[0], kept=len(files), errored={"OSError": 1})
    replace(manifest, outputs=directory.digests(), counts=(counts,)).write(directory.path / MANIFEST)
    ended = invoke("merge", one)
    assert ended.out == "merged read\n" and "some records errored" in ended.err
    again = invoke("read", one)
    assert "1 errored" in again.out and "read: nothing to do" in again.out
    assert "1 errored" not in invoke("read", one, "--part", "1/2").out


def test_a_part_that_was_made_of_something_else_does_not_fit(corpus: Path, tmp_path: Path, invoke: Invoke) -> None:
    one = tmp_path / "one"
    for part in ("1/2", "2/2"):
        assert invoke("read", one, "--corpus", corpus, "--part", part).status == 0
    (kept,) = (one / "parts").glob("*.2-of-2/kept-*")
    kept.write_bytes(kept.read_bytes()[:-1])
    ended = invoke("merge", one)
    assert ended.status == 1
    assert "missing or changed since it was written" in ended.err
    assert "read: 1 of 2 parts are here and fit" in ended.err


def test_a_machine_with_other_versions_may_have_made_it(corpus: Path, tmp_path: Path, invoke: Invoke) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert invoke("read", there, "--corpus", corpus).status == 0
    assert invoke("read", here, "--corpus", corpus, "--part", "1/2").status == 0
    (path,) = there.glob("stages/*-read/stage.json")
    manifest = json.loads(path.read_text())
    made_by = manifest["made_by"] | {"python": [3, 99]}
    path.write_text(json.dumps(manifest | {"made_by": made_by, "key": "another machine's"}))
    merged = invoke("merge", here, there).out.splitlines()
    assert merged[0] == "merged read"
    assert merged[1].startswith("  read was made by Python 3.99, ")
    assert invoke("read", here).out.endswith("read: nothing to do\n")
    assert shards(here, "read") == shards(there, "read")


def test_a_machine_with_other_code_may_not(corpus: Path, tmp_path: Path, invoke: Invoke) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert invoke("read", there, "--corpus", corpus).status == 0
    assert invoke("read", here, "--corpus", corpus, "--part", "1/2").status == 0
    (path,) = there.glob("stages/*-read/stage.json")
    manifest = json.loads(path.read_text())
    made_by = manifest["made_by"] | {"code": {**manifest["made_by"]["code"], "transforms.read": "other"}}
    path.write_text(json.dumps(manifest | {"made_by": made_by}))
    assert "read: 1 of 2 parts are here and fit" in said(invoke("merge", here, there))


def test_what_looks_at_all_records_has_no_parts(built: Built, tmp_path: Path, invoke: Invoke) -> None:
    root = tmp_path / "run"
    shutil.copytree(built.root, root)
    assert said(invoke("deduplicate", root, "--part", "1/2")) == (
        "deduplicate looks at all records at once: it has no parts"
    )
    assert "'2' is not a part: give its number and the number of parts" in said(invoke("probe", root, "--part", "2"))
    assert "nothing to merge" in said(invoke("merge", root))


def test_parts_are_disjoint_and_complete() -> None:
    parts = [Part.parse(f"{n}/3") for n in (1, 2, 3)]
    assert all(sum(part.holds(number) for part in parts) == 1 for number in range(30))


def test_it_is_explained_why_a_stage_would_run_again(
    built: Built, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    shutil.copytree(built.root, root)
    assert set(line.partition(": ")[2] for line in invoke("explain-cache", root).out.splitlines()) == {"up to date"}
    from kernelquarry.pipeline.runtime import fingerprint

    room_digests, probe = fingerprint.room_digests, "transforms.probe"
    monkeypatch.setattr(
        fingerprint,
        "room_digests",
        lambda root: {r: "other" if r == probe else d for r, d in room_digests(root).items()},
    )
    (shard,) = root.glob("stages/*-tidy/kept-*.parquet")
    shard.write_bytes(b"")
    lines = invoke("explain-cache", root).out.splitlines()
    first = lines.index("probe: would run again, 0 of 5 results are stored")
    assert lines[first + 1] == "  code transforms.probe changed"
    assert f"  output {shard.name} is missing or changed since it was written" in lines
    assert "  code transforms.probe changed" in lines[first + 2 :]  # decontaminate plants controls by it
    assert "lower: up to date" in lines


def test_a_run_of_an_earlier_release_is_refused_with_its_release(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "run.json").write_text('{"corpus": "tiny"}')
    line = said(invoke("funnel", tmp_path))
    assert f"{tmp_path} was made by release 0.1" in line and "start anew with another --out" in line
