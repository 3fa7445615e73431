"""The rows on the first screen of the README are rows of the sample."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from kernelquarry.pipeline.dataset.rows import read_rows

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_sample_loads_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)  # else a cached sample may be an older one
    (session,) = (block for block in BLOCKS if block.startswith(">>>"))
    example = doctest.DocTestParser().get_doctest(session, {}, "README", "README.md", 0)
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize(("start", "column"), [("class Model(", "python_code"), ("class ModelNew(", "triton_code")])
def test_the_code_is_a_rows_code(start: str, column: str) -> None:
    (row,) = (row for row in read_rows(ROOT / "examples" / "sample") if row.module_name == "Snake")
    (block,) = (block for block in BLOCKS if block.startswith(start))
    shown = [
        re.sub(r"(  # (python|triton)_code.*|  # the same .*| \.\.\.  # allocate.*)$", "", line)
        for line in block.splitlines()
    ]
    code = re.sub(r"\(\n +(.*[^,])\n\):", r"(\1):", getattr(row, column))  # a signature as the README's width has it
    assert len(shown) > 8 and set(shown) <= set(code.splitlines())
