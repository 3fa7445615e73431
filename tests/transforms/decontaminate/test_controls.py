"""A rung that misses a planted control, or finds a clean one, fails the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from factories import MODULE_CODE, make_module, make_probed

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.decontaminate import (
    ControlError,
    Origin,
    fingerprint_of,
    problems_of,
    transform,
    write_index,
)
from kernelquarry.transforms.decontaminate.controls import PREFIX, check
from kernelquarry.transforms.decontaminate.ladder import Ladder, Rung, Thresholds
from kernelquarry.transforms.decontaminate.plant import Controls, plant
from kernelquarry.transforms.decontaminate.transform import DecontaminateModules

OPTIONS = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
CLEAN = make_probed(make_module("import torch\n\n\nclass Model(torch.nn.Module):\n    pass\n"))
CLEAN = replace(CLEAN, python_code=CLEAN.module.code)


@pytest.fixture(scope="module")
def controls() -> Iterator[Controls]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield plant(sandbox)


def found(controls: Controls, blind: Rung | None = None) -> dict[str, Any]:
    ladder = Ladder(controls.problems)
    hits = {
        row.id: ladder.climb(fingerprint_of(row.python_code, (row.graph,), row.behaviours)) for row in controls.rows
    }
    return {id.removeprefix(PREFIX): [hit for hit in row if hit.rung is not blind] for id, row in hits.items()}


def test_all_rungs_find_their_controls(controls: Controls) -> None:
    check(found(controls))


@pytest.mark.parametrize("rung", Rung)
def test_a_rung_that_finds_nothing_fails(rung: Rung, controls: Controls) -> None:
    with pytest.raises(ControlError, match=f"{rung}.* did not find the planted row"):
        check(found(controls, blind=rung))


def test_a_rung_that_finds_everything_fails(controls: Controls) -> None:
    every = found(controls)
    with pytest.raises(ControlError, match="which is clean"):
        check({**every, "negative_loss": every["renamed"]})
    with pytest.raises(ControlError, match="was lost on the way"):
        check({name: hits for name, hits in every.items() if name != "one_added"})


def test_the_stage(tmp_path: Path, controls: Controls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "_plant", lambda _: controls)
    index = tmp_path / "bench.index.jsonl"
    write_index(index, Origin("bench", "place"), "2.0", problems_of("bench", {"1": fingerprint_of(MODULE_CODE)}))
    overlapping = make_probed()

    def as_expected(outcomes: Iterable[tuple[str, Any]]) -> None:
        by_id = {o.id if isinstance(o, Dropped) else o.record.id: o for _, o in outcomes}
        assert set(by_id) == {CLEAN.id, overlapping.id}  # nothing that was planted
        assert by_id[CLEAN.id] == Kept(CLEAN)
        loss = by_id[overlapping.id]
        assert loss.reason is Reason.CONTAMINATED and loss.evidence.startswith("source bench/1 1.00")

    with beam.Pipeline(options=OPTIONS) as pipeline:
        stage = DecontaminateModules((index,), SandboxSettings(workers=1))
        assert_that(pipeline | beam.Create([CLEAN, overlapping]) | stage, as_expected)


def test_a_copy_of_a_single_operator_can_be_kept_with_a_label(
    tmp_path: Path, controls: Controls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transform, "_plant", lambda _: controls)
    relu = canonical([["input"], ["aten.relu.default", [0]]])
    single, copy = fingerprint_of(MODULE_CODE, [relu]), make_probed()
    index = tmp_path / "bench.index.jsonl"
    write_index(index, Origin("bench", "place"), "2.0", problems_of("bench", {"level1/2": single, "level1/1": single}))

    def labelled(outcomes: Iterable[tuple[str, Any]]) -> None:
        kept = {outcome.record.id: outcome.record.matched_problems for _, outcome in outcomes}
        assert kept == {CLEAN.id: (), copy.id: ("bench/level1/1", "bench/level1/2")}

    with beam.Pipeline(options=OPTIONS) as pipeline:
        stage = DecontaminateModules((index,), SandboxSettings(workers=1), Thresholds(least_operators=2))
        assert_that(pipeline | beam.Create([CLEAN, copy]) | stage, labelled)


def test_the_stage_fails_with_its_controls(controls: Controls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "_plant", lambda _: replace(controls, problems=controls.problems[:1]))
    with pytest.raises(Exception, match="did not find the planted row"), beam.Pipeline(options=OPTIONS) as pipeline:
        _ = pipeline | beam.Create([CLEAN]) | DecontaminateModules((), SandboxSettings(workers=1))
