"""The stage times a share of the pairs and keeps all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from factories import make_fingerprint, make_pairs, make_timing

from kernelquarry.pipeline.run.run_settings import Settings, TimedShare
from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import Counted, StageContext
from kernelquarry.transforms.time.transform import TimePairs


def add_timing(pair: Pair) -> Outcome[Pair]:
    return Kept(replace(pair, timings=(make_timing(),)))


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0, 0), (0.3, 5, 25), (1.0, 48, 48)])
def test_a_share_is_timed_and_none_is_lost(
    share: float, least: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimePairs, "work", Work("time", add_timing, Pair, ExecutionMode.INLINE))
    pairs = make_pairs(48)
    context = StageContext(
        fingerprint=make_fingerprint(),
        store=tmp_path / "store",
        sandbox=SandboxSettings(workers=1),
        settings=Settings(time=TimedShare(share)),
    )

    def check(found: Iterable[Counted]) -> None:
        ends = [end.record for line, end in found if line == "time" and isinstance(end, Kept)]
        assert sorted(end.id for end in ends) == sorted(pair.id for pair in pairs)
        assert least <= sum(bool(end.timings) for end in ends) <= most

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        assert_that(pipeline | beam.Create(pairs) | TimePairs.from_context(context), check)
