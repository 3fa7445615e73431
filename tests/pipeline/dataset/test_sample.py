"""The sample in `examples/sample` is what `make sample` builds from `examples/modules`."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from factories import ENVIRONMENT

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Pair
from tests.pipeline.command import Ended

ROOT = Path(__file__).parents[3]
MODULES, SAMPLE = ROOT / "examples" / "modules", ROOT / "examples" / "sample"
REBUILT = ("activations.py", "embeddings.py")
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


def test_a_build_of_some_modules_gives_their_rows(
    rows: list[Pair], tmp_path: Path, invoke: Callable[..., Ended]
) -> None:
    """All of a row is compared but the environment, the revision of the folder, and the last digits of errors."""
    if (made := rows[0].verdict.environment.torch) != version("torch"):
        pytest.skip(f"the sample was made with torch {made}")
    folder = tmp_path / "modules"
    folder.mkdir()
    for name in ("LICENSE", *REBUILT):
        shutil.copy(MODULES / name, folder)
    assert invoke("dataset", folder, "--out", tmp_path / "out").status == 0
    rebuilt = {row.id: comparable(row) for row in read_rows(tmp_path / "out" / "dataset")}
    assert rebuilt == {row.id: comparable(row) for row in rows if row.source.path in REBUILT}


def comparable(row: Pair) -> Pair:
    trials = [replace(trial, error=0.0, honest_error=0.0, tolerance=0.0) for trial in row.verdict.trials]
    verdict = replace(row.verdict, trials=tuple(trials), environment=ENVIRONMENT)
    return replace(row, source=replace(row.source, revision=""), verdict=verdict)
