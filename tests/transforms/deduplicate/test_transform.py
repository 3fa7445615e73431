"""The distributed transform gives the same outcomes as deduplication in one process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from deduplicate_oracle import deduplicate
from factories import MODULE_CODE, make_module, make_probed
from test_compare_sources import LONG, NEAR, OTHER, POOL, make, make_slice

from kernelquarry.pipeline.runtime.multiprocess import OnAllCores
from kernelquarry.transforms.deduplicate.compare_sources import form_all
from kernelquarry.transforms.deduplicate.transform import DeduplicateModules

BROKEN = make_probed(make_module("def ("), python_code="def (")
GRAPH = '[["input"],["aten.relu",[0]]]'


def test_outcomes_equal_the_oracle() -> None:
    alike = [replace(make(code + "# alike\n"), behaviour="ab" * 8) for code in (OTHER, MODULE_CODE)]
    kin = [replace(make(code + "# kin\n"), graph=GRAPH) for code in (LONG.replace("scale", "x"), NEAR)]
    slices = [make_slice(LONG + "# a slice\n"), make_slice(NEAR + "# a slice\n"), make_slice(OTHER + "# another\n")]
    modules = [*POOL, *alike, *kin, *slices, BROKEN]
    expected = deduplicate(modules)

    def check(found: Iterable[tuple[str, Any]]) -> None:
        assert {repr(outcome) for _, outcome in found} == {repr(outcome) for outcome in expected}

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        assert_that(pipeline | beam.Create(modules) | DeduplicateModules(), check)


def test_several_batches_in_worker_processes_give_each_module_once() -> None:
    modules = [make(f"{MODULE_CODE}\n\ndef other_{i}(x):\n    return x + {i}\n") for i in range(1200)]

    def check(found: Iterable[Any]) -> None:
        found = list(found)
        assert {member.id for member in found} == {module.id for module in modules}
        assert len(found) == len(modules)

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        batches = pipeline | beam.Create([modules[i : i + 300] for i in range(0, 1200, 300)])
        assert_that(batches | beam.ParDo(OnAllCores(form_all)), check)
