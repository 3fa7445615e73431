"""The ablation counts the rows that each filter removes, and that it alone removes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from factories import make_candidate, make_pairs, make_probed, make_timing, make_verified
from typer.testing import CliRunner

from kernelquarry.filters.balance import Caps
from kernelquarry.pipeline.cli.app import app
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.graph import named
from kernelquarry.pipeline.report.ablate import objections
from kernelquarry.pipeline.run.execute_stage import write_sorted
from kernelquarry.pipeline.run.products import unscreened
from kernelquarry.pipeline.run.run import Run, claim
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.records import Verified


def test_each_filter_sees_each_row() -> None:
    first, *others = [replace(pair, timings=(make_timing(),)) for pair in make_pairs(6)]
    found = objections([replace(first, python_code="x = 1  # " + "\u4e2d" * 90, timings=()), *others], Caps(cluster=1))
    assert found["Noise"].keys() == found["NoSpeed"].keys() == {first.id}
    assert not found["Secrets"] and not found["Cap on one cluster"]


def test_a_run_shows_the_rows_that_its_filters_removed(tmp_path: Path) -> None:
    """The ablation starts from the verified rows, not from the kept ones."""
    noisy = make_candidate(replace(make_probed(), python_code="x = 1  # " + "\u4e2d" * 90))
    run = Run(tmp_path, claim(tmp_path, "tiny"), tmp_path, tmp_path / "store", SandboxSettings())
    shard = run.directory(named("distill")).path / "kept-00000-of-00001.parquet"
    shard.parent.mkdir(parents=True)
    write_sorted(shard, [make_verified(), make_verified(noisy)], Verified)
    assert len(list(unscreened(run))) == 2
    ended = CliRunner().invoke(app, ["ablate", str(tmp_path)])
    assert ended.exit_code == 0, ended.output
    (line,) = (line for line in ended.output.splitlines() if line.startswith("Noise"))
    assert line.split()[1:4] == ["1", "50.0%", "1"]


def test_the_command(tmp_path: Path) -> None:
    write_dataset(tmp_path, make_pairs(8), Rejected(), [], Build("tiny", {}))
    ended = CliRunner().invoke(app, ["ablate", str(tmp_path), "--repository", "1"])
    assert ended.exit_code == 0, ended.output
    said = " ".join(ended.output.split())  # lines are as long as the terminal has it
    assert "NoSpeed" in said and "2 of repository layers0, at most 1" in said
