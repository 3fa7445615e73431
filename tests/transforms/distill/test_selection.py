"""All verified answers are kept, and the best of a module's are marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from factories import TRITON_CODE, make_distillation, make_pair, make_timing, make_verdict

from kernelquarry.pipeline.schema.records import Pair, Purity
from kernelquarry.transforms.distill import mark


def pair(name: str, **overrides: Any) -> Pair:
    """Of one module; `name` makes it a row of its own."""
    return make_pair(**{"id": f"pair_{name}", "triton_code": f"{TRITON_CODE}# {name}\n", **overrides})


def marks(*pairs: Pair) -> dict[str, set[str]]:
    marked = mark(pairs)
    assert [(row.id, row.triton_code) for row in marked] == [(row.id, row.triton_code) for row in pairs]
    return {row.id.removeprefix("pair_"): set(row.marks) for row in marked}


def test_each_of_the_best_has_its_mark() -> None:
    fast = pair("fast", timings=(make_timing(candidate=50.0),), verdict=make_verdict(launches=2))
    slow = pair("slow", timings=(make_timing(candidate=90.0),), purity=Purity.MIXED, extern_ops=("aten.convolution",))
    short = pair("short", triton_code=TRITON_CODE)
    assert marks(fast, slow, short) == {"fast": {"fastest"}, "slow": set(), "short": {"shortest", "purest"}}


def test_what_stands_alone_is_not_the_best_of_anything() -> None:
    other = pair("other", python_code="another module")
    assert marks(pair("one", timings=(make_timing(),)), other) == {"one": set(), "other": set()}


def test_of_equals_the_first_by_id_is_marked_in_any_order() -> None:
    a, b = pair("a"), pair("b")
    assert marks(a, b) == marks(b, a) == {"a": {"shortest", "purest"}, "b": set()}


def test_times_that_cannot_be_compared_make_nothing_the_fastest() -> None:
    timing = make_timing(candidate=50.0)
    elsewhere = replace(timing, environment=replace(timing.environment, device="NVIDIA A100"))
    for other in (elsewhere, replace(timing, suspect="too fast"), make_timing(candidate=0.0)):
        found = marks(pair("a", timings=(timing,)), pair("b", timings=(other,)), pair("c"))
        assert not any("fastest" in those for those in found.values())


def test_near_copies_of_the_lowered_kernel_are_labelled_alone_or_not() -> None:
    near = pair("near", distillation=(make_distillation(similarity=0.9),))
    own = pair("own", distillation=(make_distillation(similarity=0.5),))
    assert marks(near) == {"near": {"near_lowered"}}
    assert marks(own)["own"] == set()
