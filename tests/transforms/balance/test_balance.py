"""Distributed balancing drops the same rows as `over_caps`, and loses no row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from factories import make_pair

from kernelquarry.filters.balance import CAPS, Caps, over_caps
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.transforms.balance.transform import BalancePairs

PAIRS = [
    make_pair(python_code=f"x = {i}", cluster="abc"[i % 3], operators=("aten.add",) if i % 2 else ("aten.mul",))
    for i in range(30)
]


@pytest.mark.parametrize("caps", [CAPS, Caps(7, 9, 12), Caps(1, 1, 1), Caps(0, 0, 0)])
def test_the_same_rows_go(caps: Caps) -> None:
    def check(found: Iterable[tuple[str, Any]]) -> None:
        ends = [end for _, end in found]
        over = sorted((end for end in ends if isinstance(end, Dropped)), key=lambda end: end.id)
        assert over == over_caps(PAIRS, caps)
        stay = {end.record.id for end in ends if isinstance(end, Kept)}
        assert stay == {pair.id for pair in PAIRS} - {end.id for end in over} and len(ends) == len(PAIRS)

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        assert_that(pipeline | beam.Create(PAIRS) | BalancePairs(caps), check)
