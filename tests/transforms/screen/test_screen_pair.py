"""A verified candidate becomes one flat row, or is dropped with the first filter's evidence."""

from __future__ import annotations

from dataclasses import fields, replace

from factories import make_candidate, make_probed, make_verified

from kernelquarry.filters import measure
from kernelquarry.filters.length import Length
from kernelquarry.filters.objection import Objection
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.ids import pair_id
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.screen import screen


def test_kept_with_the_id_of_its_code() -> None:
    graph = '[["input"],["parameter"],["aten.mul",[0,1]],["aten.view",[2]],["aten.sin",[0]],["aten.add",[3,4]]]'
    verified = make_verified(make_candidate(make_probed(graph=graph)))
    outcome = screen(verified)
    assert isinstance(outcome, Kept)
    assert outcome.record.measures == replace(measure(outcome.record), operators=3, depth=2)
    assert outcome.record.measures.kernels == len(outcome.record.kernels) and outcome.record.measures.tokens > 100
    assert outcome.record.id == pair_id(verified.candidate.probed.python_code, verified.candidate.triton_code)


def test_every_field_of_the_row_comes_from_the_record_of_that_name() -> None:
    verified = make_verified()
    candidate, probed, module = verified.candidate, verified.candidate.probed, verified.candidate.probed.module
    pair = flatten_verified(verified)
    renamed = {"module_name": module.name}
    own = {"id", "entry_point", "cluster", "split", "schema_version", "verdict", "timings", "explanations", "marks"}
    own |= {"measures"}
    for field in fields(Pair):
        if field.name in own:
            continue
        holders = [h for h in (verified, candidate, probed, module) if hasattr(h, field.name)]
        expected = renamed[field.name] if field.name in renamed else getattr(holders[0], field.name)
        assert getattr(pair, field.name) == expected, field.name
    assert (pair.entry_point, pair.verdict, pair.cluster, pair.split) == ("Model", verified.verdict, "", "")


def test_dropped_under_the_id_that_came_in() -> None:
    verified = make_verified(make_candidate(make_probed(operators=("aten.view.default",))))
    outcome = screen(verified)
    assert isinstance(outcome, Dropped)
    assert (outcome.id, outcome.reason) == (verified.id, Reason.TRIVIAL)


def test_the_first_filter_that_objects_decides() -> None:
    second = Objection(Reason.SECRET, "never asked")
    outcome = screen(make_verified(), filters=(lambda pair: None, Length(at_most=10), lambda pair: second))
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.TOO_LONG
