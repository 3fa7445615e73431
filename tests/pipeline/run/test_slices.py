"""A corpus named with `+slices` is cut into slices, which `deduplicate` reads with the modules."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from kernelquarry.pipeline.cli.open_run import open_run
from kernelquarry.pipeline.graph import ORDER, SLICE, named
from kernelquarry.pipeline.run.build import plan_stage, run_stage
from kernelquarry.pipeline.run.run import Run
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Probed
from tests.pipeline.conftest import LAYERS
from tests.transforms.read.wheel import MIT


def make_run(folder: Path, suffix: str) -> Run:
    source = folder / "layers"
    source.mkdir(exist_ok=True)
    (source / "LICENSE").write_text(MIT)
    (source / "layers.py").write_text(LAYERS)
    return open_run(folder / f"out{suffix}", f"{source}{suffix}", folder / "cache", workers=1)


def kept(run: Run, stage: str) -> list[Probed]:
    return [record for path in run.directory(named(stage)).kept for record in read_records(path, Probed)]


def test_slices_join_the_modules(tmp_path: Path) -> None:
    run = make_run(tmp_path, "+slices")
    assert run.has_slices and run.corpus.name == "layers"
    stages = ORDER[: ORDER.index(named("deduplicate")) + 1]
    counts = [run_stage(run, stage, lambda *_: contextlib.nullcontext())[0].counts for stage in stages]
    slices = {record.module.name: record for record in kept(run, "slice")}
    assert {"Mul", "ReLUAdd", "Sub", "Abs", "SubAbs"} & slices.keys() >= {"Mul", "SubAbs"}
    assert {record.module.slice_of[0].name for record in slices.values()} == {"Scale", "Distance"}
    assert counts[-1][0].entered == len(kept(run, "probe")) + len(slices)
    modules = [record.module.name for record in kept(run, "deduplicate") if not record.module.slice_of]
    assert sorted(modules) == ["Distance", "Scale"] and len(kept(run, "deduplicate")) > len(modules)
    assert [count.stage for count in run.counts()][-4:] == ["probe", "cut", "slice", "deduplicate"]


def test_without_the_suffix_nothing_is_cut(tmp_path: Path) -> None:
    run = make_run(tmp_path, "")
    assert not run.has_slices and not run.has_extra(named("deduplicate"))
    assert plan_stage(make_run(tmp_path, "+slices"), named("read")).inputs == plan_stage(run, named("read")).inputs
    with pytest.raises(UserError, match=r"has no slices: start a run of the corpus .*layers\+slices"):
        plan_stage(run, SLICE)
