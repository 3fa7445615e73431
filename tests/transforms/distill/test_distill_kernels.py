"""Whom models are asked about: every module with a verified kernel, and beside them those that have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to
from corpus import load_case
from factories import make_verdict

from kernelquarry.pipeline.schema.distill_result import DistillResult
from kernelquarry.pipeline.schema.outcome import Errored, Kept
from kernelquarry.pipeline.schema.records import Probed, Verified
from kernelquarry.transforms.distill.transform import DistillKernels

SEED = Verified(load_case("honest", "softmax").candidate, make_verdict())
PROBED = SEED.candidate.probed
BARE = replace(PROBED, module=replace(PROBED.module, id="mod_bare"))

Line = tuple[str, str, str]  # of the funnel, with the outcome's kind and id


def no_answers(module: Any) -> Any:
    return Kept(DistillResult(module.id, (), ()))


def fails(module: Any) -> Any:
    return Errored(module.id, "Unanswered", "nobody is there")


def line_of(line: str, outcome: Any) -> Line:
    return line, type(outcome).__name__, outcome.id


SEEDS_ALONE = [("teach", "Kept", SEED.id), ("distill", "Kept", SEED.id)]


@pytest.mark.parametrize(
    ("teach", "modules", "expected"),
    [
        (None, [], SEEDS_ALONE),
        (no_answers, [], SEEDS_ALONE),
        (no_answers, [PROBED, BARE], [*SEEDS_ALONE, ("teach", "Kept", BARE.id)]),
        (
            fails,
            [PROBED, BARE],
            [("teach", "Errored", SEED.id), ("teach", "Errored", BARE.id), ("distill", "Kept", SEED.id)],
        ),
    ],
)
def test_each_module_is_sent_once_and_its_kernel_is_kept(
    teach: Callable[[Any], Any] | None, modules: list[Probed], expected: list[Line]
) -> None:
    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        lines = (
            pipeline
            | beam.Create([SEED])
            | DistillKernels(
                None if teach is None else "Teach" >> beam.Map(teach), beam.Create(modules) if modules else None
            )
            | "Line" >> beam.MapTuple(line_of)
        )
        assert_that(lines, equal_to(expected))
