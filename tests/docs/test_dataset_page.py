"""The code on the page about using the dataset runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from factories import make_pairs, make_rejection

from kernelquarry.pipeline.dataset.configs import CONFIGS
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.schema.records import SCHEMA_VERSION

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guides/dataset.md").read_text()
PARTS = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
BLOCKS = {
    heading: re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for heading, text in zip(PARTS[1::2], PARTS[2::2], strict=True)
}


@pytest.mark.parametrize("heading", [heading for heading, blocks in BLOCKS.items() if blocks])
def test_what_is_shown_runs(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = make_pairs(12, ("train", "test"))
    rejected = Rejected((make_rejection(cluster=pairs[0].cluster),))
    write_dataset(tmp_path / "out/tiny/dataset", pairs, rejected, [], Build("tiny", {}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (block,) = BLOCKS[heading]
    assert len([line for line in block.splitlines() if line.strip()]) <= 12
    exec(compile(block, f"dataset.md: {heading}", "exec"), {"__name__": "shown"})
    assert capsys.readouterr().out.strip()


def test_pandas_and_duckdb_are_shown() -> None:
    assert {"datasets", "pandas", "DuckDB", "As records"} <= {name for name, found in BLOCKS.items() if found}


def test_every_config_and_version_is_documented() -> None:
    assert re.findall(r"^\| `(\w+)` \| \w", PAGE, re.MULTILINE) == [config.name for config in CONFIGS]
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == [str(n) for n in range(1, SCHEMA_VERSION + 1)]
