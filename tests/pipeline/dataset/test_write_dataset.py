"""The published folder loads with the real library, has a correct card and manifest, and is reproducible."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import datasets
import pytest
import yaml
from factories import LICENCE, make_pairs, make_timing

from kernelquarry.pipeline.dataset import card
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import SCHEMA_VERSION, Pair

BUILD = Build(corpus="tiny", sources={"layers-1.0.whl": "0" * 64})
FUNNEL = [
    StageCounts("probe", "module", 40, 30, {"no_workload": 9}, {"OSError": 1}),
    StageCounts("verify", "module", 30, 12, {"wrong_values": 18}),
]


def load(folder: Path, tmp_path: Path) -> datasets.DatasetDict:
    return datasets.load_dataset(str(folder), "pairs", cache_dir=str(tmp_path / "cache"))


def rows_of(pairs: list[Pair], split: str) -> list[dict]:
    """The values in the form of `datasets`: lists for tuples, strings for enums."""
    chosen = sorted((pair for pair in pairs if pair.split == split), key=lambda pair: pair.id)
    return json.loads(json.dumps([asdict(pair) for pair in chosen]))


def card_header(folder: Path) -> dict:
    return yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])


def test_every_split_loads_with_every_value(tmp_path: Path) -> None:
    pairs = make_pairs(12, ("train", "validation", "test"))
    write_dataset(tmp_path / "dataset", pairs, Rejected(), FUNNEL, BUILD)
    loaded = load(tmp_path / "dataset", tmp_path)
    assert {split: loaded[split].to_list() for split in loaded} == {
        split: rows_of(pairs, split) for split in ("train", "validation", "test")
    }


def test_a_split_without_rows_is_left_out(tmp_path: Path) -> None:
    pairs = make_pairs(6, ("train", "test"))
    write_dataset(tmp_path / "dataset", pairs, Rejected(), FUNNEL, BUILD)
    assert sorted(load(tmp_path / "dataset", tmp_path)) == ["test", "train"]


def test_without_pairs_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no pair was kept"):
        write_dataset(tmp_path / "dataset", [], Rejected(), FUNNEL, BUILD)
    assert not (tmp_path / "dataset").exists()


def test_the_same_build_gives_the_same_bytes(tmp_path: Path) -> None:
    pairs = make_pairs(9, ("train", "test"))
    for name, rows in (("a", pairs), ("b", pairs[::-1])):
        write_dataset(tmp_path / name, rows, Rejected(), FUNNEL, BUILD)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second


def test_the_manifest_has_the_digest_of_every_other_file(tmp_path: Path) -> None:
    write_dataset(tmp_path, make_pairs(9, ("train", "test")), Rejected(), FUNNEL, BUILD)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    del files["manifest.json"]
    assert manifest["files"] == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert manifest["rows"]["pairs"] == {"train": 5, "test": 4}
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert manifest["build"]["sources"] == {"layers-1.0.whl": "0" * 64}
    assert manifest["funnel"][0]["dropped"] == {"no_workload": 9}
    assert manifest["environments"][0]["device"] == "cpu-interpreter"


def test_the_card_has_speeds_only_if_measured(tmp_path: Path) -> None:
    pairs = make_pairs(4)
    write_dataset(tmp_path / "without", pairs, Rejected(), FUNNEL, BUILD)
    timed = [replace(pair, timings=(make_timing(),)) for pair in pairs[:3]] + pairs[3:]
    write_dataset(tmp_path / "with", timed, Rejected(), FUNNEL, BUILD)
    without, with_times = ((tmp_path / name / "README.md").read_text() for name in ("without", "with"))
    assert "No kernel was timed" in without and "How fast" not in without
    assert "No kernel was timed" not in with_times and "3 pairs were timed on a GPU" in with_times
    assert "| eager | 3 | 100.0 % | 3.00 |\n| torch.compile | 3 | 100.0 % | 2.00 |\n" in with_times


def test_the_card_has_the_rates_of_other_judges_only_if_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = tmp_path / "templates"
    shutil.copytree(card.TEMPLATES, templates)
    monkeypatch.setattr(card, "TEMPLATES", templates)
    texts = []
    for table in ("", "| class | candidates |\n"):
        (templates / "versus.md").write_text(table)
        write_dataset(tmp_path / "dataset", make_pairs(4), Rejected(), FUNNEL, BUILD)
        texts.append((tmp_path / "dataset" / "README.md").read_text())
    assert "compared with KernelBench" not in texts[0]
    assert "## Error rates compared with KernelBench's evaluator\n\n| class | candidates |\n" in texts[1]


def test_the_card_has_figures_and_a_header(tmp_path: Path) -> None:
    write_dataset(tmp_path, make_pairs(20, ("train", "test")), Rejected(), FUNNEL, BUILD)
    header, text = card_header(tmp_path), (tmp_path / "README.md").read_text()
    assert header["license"] == ["apache-2.0", "bsd-3-clause", "mit"]
    assert header["size_categories"] == ["n<1K"]
    assert header["configs"][0] == {
        "config_name": "pairs",
        "default": True,
        "data_files": [
            {"split": "train", "path": "data/pairs/train-*.parquet"},
            {"split": "test", "path": "data/pairs/test-*.parquet"},
        ],
    }
    assert [config["config_name"] for config in header["configs"]] == ["pairs", "sft", "rl"]
    for line in (
        "| pure Triton | 80.0 % |",
        "| in train | 10 |",
        "| MIT | 10 | 50.0 % |",
        "| probe | module | 40 | 30 | 9 | 1 |",
        "| compiled for sm_90 | 20 |",
    ):
        assert line in text.splitlines()
    assert "No row ran on a GPU" in text


@pytest.mark.parametrize(
    ("spdx", "names"),
    [
        ("MIT AND Apache-2.0", ["apache-2.0", "mit"]),
        ("(MIT OR BSD-3-Clause) AND Zlib", ["bsd-3-clause", "mit", "zlib"]),
        ("Apache-2.0 WITH LLVM-exception", ["apache-2.0", "other"]),
        ("NOASSERTION", ["other"]),
    ],
)
def test_licence_expressions_become_names_of_the_hub(tmp_path: Path, spdx: str, names: list[str]) -> None:
    pair = replace(make_pairs(1)[0], licence=replace(LICENCE, spdx=spdx))
    write_dataset(tmp_path, [pair], Rejected(), FUNNEL, BUILD)
    assert card_header(tmp_path)["license"] == names
