"""Distributed balancing drops the same modules as `over_caps`, and loses none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from factories import make_module, make_probed

from kernelquarry.filters.balance import CAPS, Caps, over_caps
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.records import SliceOrigin
from kernelquarry.transforms.balance.transform import BalanceModules

MODULES = [
    make_probed(make_module(f"x = {i}"), cluster="abc"[i % 3], operators=("aten.add",) if i % 2 else ("aten.mul",))
    for i in range(30)
]


def test_slices_displace_no_module() -> None:
    origin = SliceOrigin("mod_x", "Net", "", (), 1)
    probed = [
        replace(one, module=replace(one.module, slice_of=(origin,) * (i // 2 % 2))) for i, one in enumerate(MODULES)
    ]
    modules = [one for one in probed if not one.module.slice_of]
    slices = [one for one in probed if one.module.slice_of]
    for caps in (Caps(cluster=2), Caps(operators=3)):
        over = {end.id for end in over_caps(probed, caps)}
        assert over == {end.id for part in (modules, slices) for end in over_caps(part, caps)}
        assert any(one.id not in over for one in slices)


@pytest.mark.parametrize("caps", [CAPS, Caps(7, 9, 12), Caps(1, 1, 1), Caps(0, 0, 0)])
def test_the_same_modules_go(caps: Caps) -> None:
    def check(found: Iterable[tuple[str, Any]]) -> None:
        ends = [end for _, end in found]
        over = sorted((end for end in ends if isinstance(end, Dropped)), key=lambda end: end.id)
        assert over == over_caps(MODULES, caps)
        stay = {end.record.id for end in ends if isinstance(end, Kept)}
        assert stay == {one.id for one in MODULES} - {end.id for end in over} and len(ends) == len(MODULES)

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        assert_that(pipeline | beam.Create(MODULES) | BalanceModules(caps), check)
