"""The ablation counts what each filter removes, and what it alone does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from factories import make_pairs, make_timing
from typer.testing import CliRunner

from kernelquarry.filters.balance import Caps
from kernelquarry.pipeline.ablate import objections
from kernelquarry.pipeline.cli import app
from kernelquarry.pipeline.dataset import Build, write_dataset
from kernelquarry.pipeline.rejected import Rejected


def test_each_filter_is_asked_of_each_row() -> None:
    first, *others = [replace(pair, timings=(make_timing(),)) for pair in make_pairs(6)]
    found = objections([replace(first, python_code="x = 1  # " + "\u4e2d" * 90, timings=()), *others], Caps(cluster=1))
    assert found["Noise"].keys() == found["NoSpeed"].keys() == {first.id}
    assert not found["Secrets"] and not found["Cap on one cluster"]


def test_the_command(tmp_path: Path) -> None:
    write_dataset(tmp_path, make_pairs(8), Rejected(), [], Build("tiny", {}))
    ended = CliRunner().invoke(app, ["ablate", str(tmp_path), "--repository", "1"])
    assert ended.exit_code == 0, ended.output
    said = " ".join(ended.output.split())  # lines are as long as the terminal has it
    assert "NoSpeed" in said and "2 rows of repository layers0, at most 1" in said
