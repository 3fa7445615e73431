"""The sample in `examples/sample` is what `make sample` builds from `examples/modules`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import pytest
from factories import ENVIRONMENT

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair, SourceFile
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.mine import mine_tree
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.screen import screen
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import verify

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
MODULES, SAMPLE = ROOT / "examples" / "modules", ROOT / "examples" / "sample"
REBUILT = ("Snake", "TokenEmbedding", "MixedPool")
SIZE = 1_000_000  # bytes at most


@pytest.fixture(scope="module")
def rows() -> list[Pair]:
    return list(read_rows(SAMPLE))


def test_twenty_rows_of_every_kind_in_every_size(rows: list[Pair]) -> None:
    files = Counter(row.source.path for row in rows)
    assert len(rows) == 20 and set(files) == {path.name for path in MODULES.glob("*.py")} - {"left_out.py"}
    assert {row.licence.spdx for row in rows} == {"Apache-2.0"}
    assert {len(row.kernels) for row in rows} >= {1, 2, 3, 4}
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < SIZE


def test_the_sample_is_of_the_modules_as_they_are(rows: list[Pair]) -> None:
    for row in rows:
        assert row.source.sha256 == sha256((MODULES / row.source.path).read_bytes()), "run: make sample docs"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", REBUILT)
def test_the_stages_make_the_row_again(name: str, rows: list[Pair], sandbox: Sandbox) -> None:
    """Every byte of both sources, and all evidence but the environment and the last digits of errors."""
    (row,) = (row for row in rows if row.module_name == name)
    if (made := row.verdict.environment.torch) != version("torch"):
        pytest.skip(f"the sample was made with torch {made}")
    text = (MODULES / row.source.path).read_text()
    modules = map(kept, mine_tree([SourceFile(row.source, row.licence, text)]).classes)
    module = next(module for module in modules if module.name == name)
    candidate = kept(tidy(kept(lower(kept(probe(module, sandbox)), sandbox))))
    rebuilt = kept(screen(kept(verify(candidate, sandbox))))
    assert comparable(rebuilt) == comparable(row)


def kept(outcome: Outcome[T]) -> T:
    assert isinstance(outcome, Kept), outcome
    return outcome.record


def comparable(row: Pair) -> Pair:
    """The row without the columns of stages that compare rows, and without what differs between machines."""
    trials = tuple(replace(trial, error=0.0, honest_error=0.0, tolerance=0.0) for trial in row.verdict.trials)
    verdict = replace(row.verdict, trials=trials, environment=ENVIRONMENT)
    return replace(row, verdict=verdict, marks=(), cluster="", split="")
