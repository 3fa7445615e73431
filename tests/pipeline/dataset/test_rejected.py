"""Rejected candidates are published, except those that a filter withholds, and all are counted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import datasets
import pytest
import yaml
from corpus import load_case
from factories import (
    TRITON_CODE,
    make_candidate,
    make_drop_record,
    make_example,
    make_pairs,
    make_probed,
    make_rejection,
)

from kernelquarry.pipeline.dataset.rejected import Rejected, collect_rejected
from kernelquarry.pipeline.dataset.rows import find_row, read_rejections
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.graph import STAGES
from kernelquarry.pipeline.run.products import rejected as rejected_in
from kernelquarry.pipeline.run.run import Run
from kernelquarry.pipeline.runtime.funnel import ConservationError
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.arrow import to_plain, write_shard
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Status
from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.records import Candidate, Module, Rejection
from kernelquarry.transforms.split import SPLITS, Shares
from kernelquarry.transforms.split.assign_split import split_of
from kernelquarry.transforms.verify import VerifySettings, verify
from tests.pipeline.command import Ended

BUILD = Build(corpus="tiny", sources={})
CREDENTIAL = "ghp_" + "a1B2c3" * 6  # in two parts, so that no scanner takes this file for a leak


def candidates(number: int) -> list[Candidate]:
    """Candidates, each with its own module and cluster."""
    found = []
    for i in range(number):
        probed = make_probed(cluster=f"clu_{i}", python_code=f"# {i}\n" + make_probed().python_code)
        found.append(make_candidate(replace(probed, module=replace(probed.module, id=f"mod_{i}"))))
    return found


def losses(candidates: list[Candidate]) -> list[DropRecord]:
    return [make_drop_record(candidate) for candidate in candidates]


def write(folder: Path, rejected: Rejected) -> dict:
    write_dataset(folder, make_pairs(4, ("train", "test")), rejected, [], BUILD)
    return json.loads((folder / "manifest.json").read_text())


def header(folder: Path) -> dict:
    return yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])


def load(folder: Path, tmp_path: Path, config: str) -> datasets.DatasetDict:
    return datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))


def test_dropped_candidates_are_rows_in_the_split_of_their_cluster() -> None:
    found = candidates(60)
    rows = collect_rejected(found, losses(found[:40])).rows
    assert {row.python_code for row in rows} == {candidate.probed.python_code for candidate in found[:40]}
    assert all(row.id.startswith("rej_") for row in rows) and len({row.id for row in rows}) == 40
    assert all(row.split == split_of(row.cluster, Shares()) for row in rows)
    assert {row.split for row in rows} == set(SPLITS)
    assert rows[0].counter_examples == (make_example(),)


def test_errored_candidates_are_not_published() -> None:
    found = candidates(3)
    errored = make_drop_record(found[1], status=Status.ERRORED, reason="OSError", counter_examples=())
    rejected = collect_rejected(found, [make_drop_record(found[0]), errored])
    assert [row.python_code for row in rejected.rows] == [found[0].probed.python_code]
    assert rejected.counts.entered == 1


@pytest.mark.parametrize("place", ["python_code", "triton_code", "evidence", "found"])
def test_a_credential_is_not_published(place: str) -> None:
    plain, secret = candidates(2)
    loss = make_drop_record(secret)
    match place:
        case "python_code":
            secret = replace(secret, probed=replace(secret.probed, python_code=f"KEY = {CREDENTIAL!r}\n"))
        case "triton_code":
            secret = replace(secret, triton_code=f"KEY = {CREDENTIAL!r}\n{TRITON_CODE}")
        case "evidence":
            loss = replace(loss, evidence=f"KeyError: {CREDENTIAL}")
        case "found":
            loss = replace(loss, counter_examples=(make_example(found=f"KeyError: {CREDENTIAL}"),))
    rejected = collect_rejected([plain, secret], [make_drop_record(plain), loss])
    assert [row.python_code for row in rejected.rows] == [plain.probed.python_code]
    assert CREDENTIAL not in str(rejected)
    assert rejected.counts.dropped == {"secret": 1}


def test_every_filter_is_applied() -> None:
    found = candidates(3)
    found[0] = replace(found[0], triton_code="#" * 50_000)
    found[1] = replace(found[1], probed=replace(found[1].probed, operators=()))
    counts = collect_rejected(found, losses(found)).counts
    assert (counts.entered, counts.kept, counts.dropped) == (3, 1, {"too_long": 1, "trivial": 1})


def test_a_missing_candidate_is_an_error() -> None:
    found = candidates(3)
    with pytest.raises(ConservationError, match="3 candidate entered, but 2 left"):
        collect_rejected(found[:2], losses(found))


def test_a_run_reads_them_from_its_shards(tmp_path: Path) -> None:
    found = candidates(6)
    run = Run(tmp_path, "tiny", tmp_path, tmp_path, SandboxSettings())
    tidy, verify = (run.directory(next(s for s in STAGES if s.name == name)) for name in ("tidy", "verify"))
    for index, shard in enumerate((found[:3], found[3:])):
        write_shard(tidy.path / f"kept-{index:05d}-of-00002.parquet", shard, Candidate)
    assert rejected_in(run) == Rejected()
    write_shard(verify.lost, losses(found[2:5]), DropRecord)
    assert rejected_in(run) == collect_rejected(found, losses(found[2:5]))
    assert rejected_in(run).counts.kept == 3


def test_the_config_loads_with_every_value(tmp_path: Path) -> None:
    examples = [make_example(expected=math.nan, actual=math.inf), make_example(actual=-math.inf, expected=0.0)]
    rows = [make_rejection(id=f"rej_{i}", counter_examples=(example,)) for i, example in enumerate(examples)]
    rows += [make_rejection(id="rej_2", counter_examples=(), split="test", reason="kernel_unused")]
    write(tmp_path / "dataset", Rejected(tuple(rows)))
    loaded = load(tmp_path / "dataset", tmp_path, "rejected")
    # As JSON, where NaN equals itself; floats are written so that they are read back to the bit.
    assert json.dumps(loaded["train"].to_list()) == json.dumps([to_plain(row) for row in rows[:2]])
    assert loaded["test"].to_list() == [to_plain(rows[2])]
    assert list(loaded["train"][0]["counter_examples"][0]) == list(make_example().__dataclass_fields__)
    assert sorted(load(tmp_path / "dataset", tmp_path, "pairs")) == ["test", "train"]


def test_pairs_stay_the_default(tmp_path: Path) -> None:
    write(tmp_path, Rejected((make_rejection(),)))
    first, *_, second = header(tmp_path)["configs"]
    assert (first["config_name"], first["default"]) == ("pairs", True)
    assert second == {
        "config_name": "rejected",
        "data_files": [{"split": "train", "path": "data/rejected/train-*.parquet"}],
    }


def test_the_card_names_their_licences_too(tmp_path: Path) -> None:
    write(tmp_path, Rejected((make_rejection(licence=Licence("ISC", "LICENSE: ISC")),)))
    assert header(tmp_path)["license"] == ["apache-2.0", "bsd-3-clause", "isc", "mit"]


def test_without_rejections_there_is_no_config(tmp_path: Path) -> None:
    write(tmp_path, Rejected((make_rejection(),)))
    manifest = write(tmp_path, Rejected())
    assert "rejected" not in [config["config_name"] for config in header(tmp_path)["configs"]]
    assert "| `rejected` |" not in (tmp_path / "README.md").read_text()
    assert not list((tmp_path / "data").rglob("rejected/*"))
    assert "rejected" not in manifest["rows"] and manifest["rejected"]["entered"] == 0


def test_the_manifest_and_the_card_count_them(tmp_path: Path) -> None:
    found = candidates(5)
    found[4] = replace(found[4], triton_code=CREDENTIAL)
    manifest = write(tmp_path, collect_rejected(found, losses(found[:3] + found[4:])))
    counts = manifest["rejected"]
    assert (counts["entered"], counts["kept"], counts["dropped"]) == (4, 3, {"secret": 1})
    assert sum(manifest["rows"]["rejected"].values()) == 3
    assert sum(name.startswith("data/rejected/") for name in manifest["files"]) == len(manifest["rows"]["rejected"])
    text = (tmp_path / "README.md").read_text()
    assert "| wrong_values | 3 | an output is further from the oracle than allowed |" in text.splitlines()


def test_the_order_does_not_matter(tmp_path: Path) -> None:
    found = candidates(9)
    write(tmp_path / "a", collect_rejected(found, losses(found)))
    write(tmp_path / "b", collect_rejected(found[::-1], losses(found)[::-1]))
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second


def test_rows_are_found_by_their_id(tmp_path: Path) -> None:
    row = make_rejection(module_name="Other")
    write(tmp_path, Rejected((row,)))
    assert list(read_rejections(tmp_path)) == [row]
    assert find_row(tmp_path, row.id[:9]) == find_row(tmp_path, "Other") == row
    assert find_row(tmp_path, "Scale1").id.startswith("pair_")
    with pytest.raises(UserError, match="no row rej_none"):
        find_row(tmp_path, "rej_none")


def test_a_row_holds_the_claims_of_its_candidate() -> None:
    (candidate,) = candidates(1)
    (row,) = collect_rejected([candidate], losses([candidate])).rows
    assert isinstance(row, Rejection) and isinstance(candidate.probed.module, Module)
    assert (row.kernels, row.workloads, row.licence) == (
        candidate.kernels,
        candidate.probed.workloads,
        candidate.probed.module.licence,
    )


# commands


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with two rejected rows: cases of the evil corpus, rejected by verify."""
    folder = tmp_path_factory.mktemp("dataset")
    found, lost = [], []
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        for name in ("single_block_of_64_columns", "kernel_never_launched"):
            case = load_case("evil", name)
            probed = case.candidate.probed
            probed = replace(probed, module=replace(probed.module, id=name), cluster=name, operators=("aten.exp",))
            candidate = replace(case.candidate, probed=probed)
            outcome = verify(candidate, sandbox, VerifySettings(target=""))
            assert isinstance(outcome, Dropped), outcome
            found.append(candidate)
            lost.append(DropRecord.of("verify", outcome))
    rejected = collect_rejected(found, lost)
    assert [len(row.counter_examples) for row in sorted(rejected.rows, key=lambda row: row.reason)] == [0, 1]
    write(folder, rejected)
    return folder


def row_of(folder: Path, reason: str) -> Rejection:
    (row,) = (row for row in read_rejections(folder) if row.reason == reason)
    return row


def test_show_prints_the_failing_call(published: Path, invoke: Callable[..., Ended]) -> None:
    ended = invoke("show", row_of(published, "wrong_values").id, "--dataset", published)
    text = " ".join(ended.out.split())
    assert ended.status == 0
    assert "rejected wrong_values: workload 2, heavy_tailed: error" in text
    assert re.search(r"fails on x0\[2, 6[56]\], heavy_tailed, seed", text)
    assert re.search(r"output 0\[[01], 6[45]\] is 0, not 0?\.?[0-9]", text)
    ended = invoke("show", row_of(published, "kernel_unused").id, "--dataset", published)
    assert "no single call shows the failure" in ended.out


@pytest.mark.parametrize("reason", ["wrong_values", "kernel_unused"])
def test_replay_confirms_the_failure(reason: str, published: Path, invoke: Callable[..., Ended]) -> None:
    ended = invoke("replay", row_of(published, reason).id, "--dataset", published)
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "PASS: fails again"
    assert f"now: {reason}: " in ended.out


def test_replay_reports_that_the_call_passes(tmp_path: Path, published: Path, invoke: Callable[..., Ended]) -> None:
    """The call is shrunk to the size of the kernel's only block."""
    row = row_of(published, "wrong_values")
    (example,) = row.counter_examples
    tensors = tuple(replace(spec, shape=(2, 64)) for spec in example.workload.tensors)
    right = replace(example, workload=replace(example.workload, tensors=tensors))
    write(tmp_path, Rejected((replace(row, counter_examples=(right,)),)))
    ended = invoke("replay", row.id, "--dataset", tmp_path)
    assert ended.status == 1
    assert ended.out.splitlines()[-2:] == ["now: it passes", "FAIL: does NOT fail as the row says"]
