"""A new revision drops the rows of authors who opted out, and changes nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from factories import make_pairs, make_rejection
from huggingface_hub import HfApi

from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.publish.gates import check, read_contents
from kernelquarry.pipeline.publish.hub import Target, publish
from kernelquarry.pipeline.publish.withdraw import choose, withdraw_from_folder, withdraw_from_hub
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.errors import UserError
from tests.hub_double import TOKEN, HubDouble
from tests.pipeline.command import Ended

FUNNEL = [StageCounts("verify", "module", 20, 14, {"wrong_values": 6})]
PAIRS = make_pairs(14, ("train", "test"))
NAME = PAIRS[0].source.package  # of two of them
REJECTED = Rejected(
    (make_rejection(cluster=PAIRS[0].cluster, source=replace(PAIRS[0].source)),),
    StageCounts("rejected", "candidate", 6, 1, {"secret": 5}),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "dataset", PAIRS, REJECTED, FUNNEL, Build("tiny", {"a.whl": "0" * 64}))
    return tmp_path / "dataset"


@pytest.fixture
def wish(tmp_path: Path) -> Path:
    (tmp_path / "list.txt").write_text(f"# asked on Monday\npackage {NAME}\n")
    return tmp_path / "list.txt"


def manifest(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_rows_are_removed_from_every_config(folder: Path, wish: Path) -> None:
    before = manifest(folder)
    withdrawn = withdraw_from_folder(folder, wish)
    gone = [pair.id for pair in PAIRS if pair.source.package == NAME]
    assert sorted(withdrawn.ids["pairs"]) == sorted(gone) and len(gone) == 2
    assert [row.id for row in read_rows(folder)] == [
        pair.id for split in ("test", "train") for pair in sorted(PAIRS, key=lambda pair: pair.id)
        if pair.split == split and pair.id not in gone
    ]  # fmt: skip
    contents = read_contents(folder, wish, uncompared=True)
    assert check(contents) == [] and not choose(contents).ids
    assert not any(name.startswith("data/rejected") for name in bytes_of(folder))
    after = manifest(folder)
    assert after["rejected"] == {
        **before["rejected"],
        "kept": 0,
        "dropped": {"opted_out": 1, "secret": 5},
    }
    assert after["funnel"] == [
        *before["funnel"],
        {"stage": "withdraw", "unit": "pair", "entered": 14, "kept": 12, "dropped": {"opted_out": 2}, "errored": {}},
    ]
    assert after["origin"] == before["origin"] and after["build"]["sources"] == before["build"]["sources"]
    assert after["build"]["opt_out"] != before["build"]["opt_out"]


def test_without_opt_outs_nothing_changes(folder: Path, tmp_path: Path) -> None:
    before = bytes_of(folder)
    (tmp_path / "list.txt").write_text("repository nobody/nothing\n")
    assert withdraw_from_folder(folder, tmp_path / "list.txt").summary() == "nothing to withdraw: no author opted out"
    assert bytes_of(folder) == before


def test_a_dry_run_counts_and_changes_nothing(folder: Path, wish: Path, invoke: Callable[..., Ended]) -> None:
    before = bytes_of(folder)
    ended = invoke("withdraw", folder, "--opt-out", wish, "--dry-run")
    assert ended.status == 0 and ended.out.startswith("withdrawn: 2 of pairs, ")
    assert bytes_of(folder) == before


def test_the_command_rewrites_the_folder(folder: Path, wish: Path, invoke: Callable[..., Ended]) -> None:
    assert invoke("withdraw", folder, "--opt-out", wish).status == 0
    assert manifest(folder)["rows"]["pairs"] == {"test": 6, "train": 6}
    assert invoke("withdraw", folder, "--opt-out", wish).out == "nothing to withdraw: no author opted out\n"


def test_a_repository_gets_a_new_revision(hub: HubDouble, folder: Path, wish: Path) -> None:
    api, target = HfApi(hub.url, token=TOKEN), Target("tester/kernels")
    first = publish(folder, target, api)
    dry, nothing = withdraw_from_hub(target, wish, api, dry_run=True)
    assert dry.ids and nothing is None and hub.repos["datasets", target.repo].refs["main"] == first.commit
    withdrawn, done = withdraw_from_hub(target, wish, api)
    assert done is not None and len(withdrawn.ids["pairs"]) == 2 and done.tag != first.tag
    withdraw_from_folder(folder, wish)
    assert hub.files(target.repo) == hub.files(target.repo, done.tag) == bytes_of(folder)
    again, nothing = withdraw_from_hub(target, wish, api)
    assert not again.ids and nothing is None


def test_a_missing_repository_is_an_error(hub: HubDouble) -> None:
    with pytest.raises(UserError, match="tester/none: the Hub answered 404"):
        withdraw_from_hub(Target("tester/none"), None, HfApi(hub.url, token=TOKEN))


def test_if_all_opted_out_there_is_no_dataset(folder: Path, tmp_path: Path) -> None:
    before = bytes_of(folder)
    names = {pair.source.package for pair in PAIRS}
    (tmp_path / "list.txt").write_text("".join(f"package {name}\n" for name in sorted(names)))
    with pytest.raises(UserError, match="no pair was kept"):
        withdraw_from_folder(folder, tmp_path / "list.txt")
    assert bytes_of(folder) == before
