"""Distributed balancing drops the same rows as `over_caps`, and loses no row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from factories import make_pair

from kernelquarry.filters.balance import CAPS, Caps, over_caps
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.records import SliceOrigin
from kernelquarry.transforms.balance.transform import BalancePairs

PAIRS = [
    make_pair(python_code=f"x = {i}", cluster="abc"[i % 3], operators=("aten.add",) if i % 2 else ("aten.mul",))
    for i in range(30)
]


def test_slices_displace_no_module() -> None:
    origin = SliceOrigin("mod_x", "Net", "", (), 1)
    rows = [replace(pair, slice_of=(origin,) * (i // 2 % 2)) for i, pair in enumerate(PAIRS)]
    modules, slices = [row for row in rows if not row.slice_of], [row for row in rows if row.slice_of]
    for caps in (Caps(cluster=2), Caps(operators=3)):
        over = {end.id for end in over_caps(rows, caps)}
        assert over == {end.id for part in (modules, slices) for end in over_caps(part, caps)}
        assert any(pair.id not in over for pair in slices)


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
