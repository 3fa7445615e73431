"""Publish gates: each defect of a dataset is reported by the gate for this kind of defect."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import make_contamination, make_pairs, make_rejection

from kernelquarry.pipeline.dataset.configs import derive_rows
from kernelquarry.pipeline.dataset.origin import origin
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, Release, write_dataset, write_release
from kernelquarry.pipeline.publish.gates import check, demand, missing_targets, read_contents
from kernelquarry.pipeline.publish.sign import sign
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import Distillation, TermsClass
from kernelquarry.pipeline.schema.records import Pair, Purity
from tests.ssh import make_key

BUILD = Build(corpus="tiny", sources={}, benchmarks=({"benchmark": "kernelbench", "problems": 250, "ran": 249},))


def write(folder: Path, pairs: Sequence[Pair], **configs: Sequence[Any]) -> None:
    """Write a folder with any rows, and a manifest and a card that match them."""
    rows = {"pairs": pairs, **configs}
    write_release(folder, Release(rows, StageCounts("rejected", "candidate", 0, 0), [], BUILD, origin()))


def problems(folder: Path, opt_out: Path | None = None) -> list[str]:
    return check(read_contents(folder, opt_out))


def test_a_built_dataset_passes(tmp_path: Path) -> None:
    pairs = make_pairs(12, ("train", "validation", "test"))
    write_dataset(tmp_path, pairs, Rejected((make_rejection(cluster=pairs[0].cluster),)), [], BUILD)
    assert problems(tmp_path) == []
    demand(read_contents(tmp_path))


def tampered(change: Callable[[Pair], Pair]) -> list[Pair]:
    first, *others = make_pairs(6, ("train", "test"))
    return [change(first), *others]


def verdict(**changes: Any) -> Callable[[Pair], Pair]:
    return lambda pair: replace(pair, verdict=replace(pair.verdict, **changes))


def licence(spdx: str) -> Callable[[Pair], Pair]:
    return lambda pair: replace(pair, licence=replace(pair.licence, spdx=spdx))


def forbidden(pair: Pair) -> Pair:
    made = Distillation(
        teacher="teacher",
        model="closed/model",
        served="closed/model",
        version="1",
        endpoint="hosted",
        terms=TermsClass.FORBIDS,
        terms_source="read on Monday",
        route="write",
        system="",
        sampling="{}",
        turns=(),
        similarity=0.0,
    )
    return replace(pair, distillation=(made,))


def off(pair: Pair) -> Pair:
    first, *others = pair.verdict.trials
    return verdict(trials=(replace(first, error=2 * first.tolerance), *others))(pair)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (verdict(tiers=("compiled",)), "verification: {}: its kernel was never run"),
        (verdict(trials=()), "verification: {}: a trial exceeds its tolerance, or there is no trial"),
        (off, "verification: {}: a trial exceeds its tolerance, or there is no trial"),
        (verdict(written=0.5), "verification: {}: it is labelled pure, but kernels wrote only 50% of its outputs"),
        (verdict(impostors=()), "verification: {}: no launch was recorded, or no impostor was tried"),
        (licence("GPL-3.0-only"), "licences: {} has the licence GPL-3.0-only"),
        (forbidden, "licences: {} was written by closed/model, whose terms forbid training (read on Monday)"),
        (licence("NOASSERTION"), "licences: {} has the licence NOASSERTION"),
        (lambda pair: replace(pair, triton_code="import os"), "ids: {}: its content has the id"),
        (lambda pair: replace(pair, cluster=""), "splits: a row has no cluster"),
        (lambda pair: replace(pair, inductor_code="key = 'AKIA" + "A" * 16 + "'"), "secrets: {}: aws-access-key in"),
    ],
)
def test_an_unpublishable_row_is_reported(tmp_path: Path, change: Callable[[Pair], Pair], problem: str) -> None:
    pairs = tampered(change)
    write(tmp_path, pairs)
    (found,) = problems(tmp_path)
    assert found.startswith(problem.format(pairs[0].id))
    with pytest.raises(UserError, match="may not be published: see the problems above"):
        demand(read_contents(tmp_path))


def test_rows_that_were_compared_with_no_benchmark(tmp_path: Path) -> None:
    write_dataset(tmp_path, make_pairs(2), Rejected(), [], Build("tiny", {}))
    (found,) = problems(tmp_path)
    assert found.startswith("contamination: rows were compared with no benchmark: make an index with")
    assert check(read_contents(tmp_path, uncompared=True)) == []


def test_a_private_build(tmp_path: Path) -> None:
    private = replace(BUILD, settings={"licence": {"stated": "", "private": True}})
    write_dataset(tmp_path, make_pairs(6, ("train", "test")), Rejected(), [], private)
    assert [problem.partition(": its")[0] for problem in problems(tmp_path)] == ["licences: the build is private"]
    card = (tmp_path / "README.md").read_text()
    assert "**Private**" in card and "All sources are permissively licensed" not in card


def test_a_row_of_a_contaminated_module(tmp_path: Path) -> None:
    first, second = make_pairs(2)
    taken_out = make_contamination(code_sha256=sha256(first.python_code), cluster=first.cluster, split=first.split)
    write(tmp_path, [first, second], rl=derive_rows([first, second])["rl"], contaminated=[taken_out])
    (exercise,) = derive_rows([first])["rl"]
    assert problems(tmp_path) == [
        f"contamination: {id} overlaps a benchmark: decontaminate dropped its module" for id in (first.id, exercise.id)
    ]


def test_a_cluster_in_two_splits(tmp_path: Path) -> None:
    first, second, *_ = make_pairs(6, ("train", "test"))
    write(tmp_path, [first, replace(second, cluster=first.cluster)])
    assert problems(tmp_path) == [f"splits: {first.cluster} is in test and train"]


def test_a_row_twice(tmp_path: Path) -> None:
    first, second = make_pairs(2)
    write(tmp_path, [first, first, second])
    assert problems(tmp_path) == [f"rows: {first.id} is in pairs 2 times"]


def test_a_chat_of_a_missing_pair(tmp_path: Path) -> None:
    first, second = make_pairs(2)
    write(tmp_path, [first], rl=derive_rows([first, second])["rl"])
    (found,) = problems(tmp_path)
    assert found.startswith("verification: rl_") and found.endswith(
        f"is derived from {second.id}, which is not in pairs"
    )


def test_a_row_of_an_author_who_opted_out(tmp_path: Path) -> None:
    pairs = make_pairs(6)
    write(tmp_path / "data", pairs, rl=derive_rows(pairs)["rl"])
    (tmp_path / "list.txt").write_text(f"package {pairs[2].source.package}\n")
    found = problems(tmp_path / "data", tmp_path / "list.txt")
    assert len(found) == 2 and all("kernelquarry withdraw" in problem for problem in found)


def test_many_problems_of_a_gate_are_counted(tmp_path: Path) -> None:
    write(tmp_path, [licence("GPL-2.0-only")(pair) for pair in make_pairs(9)])
    assert len(problems(tmp_path)) == 6 and problems(tmp_path)[-1] == "licences: and 4 more"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data", make_pairs(4, ("train", "test")), Rejected(), [], BUILD)
    return tmp_path / "data"


def test_a_changed_file_is_reported(folder: Path) -> None:
    card = folder / "README.md"
    card.write_text(card.read_text() + "\nAlso verified on the moon.\n")
    assert problems(folder) == ["files: README.md differs from the manifest: it was changed after it was written"]


def test_a_missing_and_an_extra_file(folder: Path) -> None:
    (folder / "VERIFIER.md").rename(folder / "notes.md")
    assert problems(folder) == [
        "files: VERIFIER.md is missing",
        "files: notes.md is not in the manifest",
        "card: it links to VERIFIER.md, which does not exist",
    ]


def edit(folder: Path, old: str, new: str) -> None:
    """Change the card, and its digest in the manifest."""
    card, path = folder / "README.md", folder / "manifest.json"
    assert old in card.read_text()
    card.write_text(card.read_text().replace(old, new))
    manifest = json.loads(path.read_text())

    manifest["files"]["README.md"] = digest(card)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pretty_name: Kernel", "pretty_name: [Kernel", "card: its header cannot be parsed"),
        ("data/rl/test-*", "data/rl/tset-*", "card: no file of the config rl matches data/rl/tset-*.parquet"),
        ("data/rl/test-*", "data/*/test-*", "card: data/pairs/test-00000-of-00001.parquet is in 2 configs"),
        ("- n<1K", "- small", "card: the Hub has no size category 'small'"),
        ("## Limits", "## Praise", "card: it has no section 'Limits'"),
        ("  default: true\n", "", "card: exactly one config must be the default"),
        ("language:\n- code\n", "", "card: its header has no language"),
    ],
)
def test_a_card_that_the_hub_would_reject(folder: Path, old: str, new: str, problem: str) -> None:
    edit(folder, old, new)
    assert any(found.startswith(problem) for found in problems(folder))


def test_metadata_of_another_dataset(folder: Path, tmp_path: Path) -> None:
    write_dataset(tmp_path / "other", make_pairs(3), Rejected(), [], BUILD)
    other = (tmp_path / "other" / "croissant.json").read_bytes()
    (folder / "croissant.json").write_bytes(other)
    assert "croissant: its files differ from those of the manifest" in problems(folder)


def test_a_signature_of_another_manifest_is_reported(folder: Path, tmp_path: Path) -> None:
    sign(folder / "manifest.json", make_key(tmp_path))
    assert problems(folder) == []
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("  ", " "))
    assert [found for found in problems(folder) if "sig" in found] == [
        "files: manifest.json.sig does not match the manifest: sign it again with --sign, or delete it"
    ]


@pytest.mark.parametrize(("text", "problem"), [("{", "is damaged"), ("{}", "is from another release")])
def test_an_invalid_manifest(folder: Path, text: str, problem: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=problem):
        read_contents(folder)


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no dataset"):
        read_contents(tmp_path)


def test_targets_that_pairs_lack_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    targets = [("sm_90", "sm_80", "sm_100"), ("sm_90", "sm_80", "sm_100", "gfx942"), ("sm_90",)]
    pairs = [verdict(targets=named)(pair) for named, pair in zip(targets, make_pairs(3), strict=True)]
    write(tmp_path, pairs)
    assert missing_targets(read_contents(tmp_path)) == [
        "1 of 3 pairs were not compiled for sm_80",
        "1 of 3 pairs were not compiled for sm_100",
        "2 of 3 pairs were not compiled for gfx942",
    ]
    demand(read_contents(tmp_path))
    assert "2 of 3 pairs were not compiled for gfx942: name it under [targets]" in caplog.text


def test_kernels_may_write_part_of_a_mixed_row(tmp_path: Path) -> None:
    pairs = [replace(verdict(written=0.5)(pair), purity=Purity.MIXED) for pair in make_pairs(2)]
    write(tmp_path, pairs)
    assert problems(tmp_path) == []
