"""Statistics of answers by model, route and turn, reasons for rejections, and costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from factories import make_candidate, make_distillation, make_drop_record, make_turn, make_verified

from kernelquarry.pipeline.dataset.teacher_stats import summarise_answers
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Explanation
from kernelquarry.pipeline.schema.records import Verified


def verified(**distillation: Any) -> Verified:
    return make_verified(replace(make_candidate(), distillation=(make_distillation(**distillation),)))


def rejected(reason: str, **distillation: Any) -> DropRecord:
    candidate = replace(make_candidate(), distillation=(make_distillation(**distillation),))
    return make_drop_record(candidate, stage="distill", reason=reason, candidates=(candidate,))


def test_without_answers_there_are_no_stats() -> None:
    assert summarise_answers([make_verified()], [make_drop_record(make_candidate())]) is None


def test_answers_are_counted_by_model_route_and_turn() -> None:
    repaired = (make_turn(reason="no_code", cost_usd=0.1), make_turn(cost_usd=0.3))
    kept = [verified(model="a", route="write"), verified(model="a", route="refine", turns=repaired), make_verified()]
    lost = [
        rejected("no_code", model="a", route="refine", turns=repaired[:1]),
        rejected("wrong_values", model="b", route="write"),
        rejected("wrong_values", model="b", route="write"),
    ]
    found = summarise_answers(kept, lost)
    assert found is not None
    groups = [(group.model, group.route, group.turn, group.answers, group.verified) for group in found.groups]
    assert groups == [
        ("a", "refine", 1, 1, 0),
        ("a", "refine", 2, 1, 1),
        ("a", "write", 1, 1, 1),
        ("b", "write", 1, 2, 0),
    ]
    assert dict(found.failures) == {"wrong_values": 2, "no_code": 1}
    assert found.kernels == 2
    # each turn is paid for once, that of the rejected first answer with its own row
    assert found.usd == pytest.approx(3 * 0.02 + 0.1 + 0.3)
    assert found.usd_a_pair == pytest.approx(found.usd / 2)
    assert found.tokens == 5 * 30


def test_an_explanation_is_an_answer_but_not_a_kernel() -> None:
    said = Explanation("Write it.", "One loads, and stores.", make_distillation(route="explain"))
    found = summarise_answers([replace(make_verified(), explanations=(said,))], [])
    assert found is not None
    assert [(group.route, group.verified) for group in found.groups] == [("explain", 1)]
    assert (found.kernels, found.usd_a_pair) == (0, 0.0)
