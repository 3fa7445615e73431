"""The code in the tutorials does what they say."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import make_pairs

from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.read import corpora
from kernelquarry.transforms.read.read_files import read_shard

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
APACHE = (Path(__file__).parents[2] / "examples/modules/LICENSE").read_text()


def run_block(page: str, first_line: str) -> dict[str, Any]:
    """Execute the block that begins with this line, and return the names that it defines."""
    blocks = re.findall(r"^```python\n(.*?)^```", (TUTORIALS / page).read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if block.startswith(f"# {first_line}\n"))
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(block, first_line, "exec", dont_inherit=True), names)
    return names


def test_the_source_of_the_tutorial_reads_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [{"cell_type": "code", "source": ["import torch\n", "x = 1"]}, {"cell_type": "markdown", "source": ["#"]}]
    (tmp_path / "LICENSE").write_text(APACHE)
    (tmp_path / "layers.ipynb").write_text(json.dumps({"cells": cells}))
    opener = run_block("extend.md", "transforms/read/notebooks.py")["open_notebooks"]
    monkeypatch.setitem(corpora.OPENERS, "notebooks", opener)
    monkeypatch.chdir(tmp_path.parent)
    name = corpora.full_name(f"notebooks:{tmp_path.name}")
    assert name == f"notebooks:{tmp_path}"  # valid from any folder
    corpus = corpora.open_corpus(name, tmp_path)
    assert corpus.name == tmp_path.name
    (outcome,) = (read for shard in corpus.shards() for read in read_shard(shard))
    assert isinstance(outcome, Kept)
    assert (outcome.record.source.path, outcome.record.text) == ("layers.py", "import torch\nx = 1")
    assert outcome.record.licence.spdx == "Apache-2.0"
    before = corpus.digests()
    (tmp_path / "layers.ipynb").write_text(json.dumps({"cells": cells[1:]}))
    assert corpus.digests() != before


def test_the_filter_of_the_tutorial_objects_above_its_limit() -> None:
    launches = run_block("extend.md", "filters/launches.py")["Launches"]
    (pair,) = make_pairs(1, ("train",))
    assert launches()(pair) is None
    assert launches(at_most=2)(replace(pair, kernels=("a", "b", "c"))).evidence == "3 kernels"
