"""All pairs of a module are kept, and the best are labelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from factories import TRITON_CODE, make_distillation, make_pair, make_timing, make_verdict

from kernelquarry.pipeline.schema.records import Pair, Purity
from kernelquarry.transforms.distill import annotate_variants


def pair(name: str, **overrides: Any) -> Pair:
    """A pair of the shared module, with a kernel of its own."""
    return make_pair(**{"id": f"pair_{name}", "triton_code": f"{TRITON_CODE}# {name}\n", **overrides})


def marks(*pairs: Pair) -> dict[str, set[str]]:
    marked = annotate_variants(pairs)
    assert [(row.id, row.triton_code) for row in marked] == [(row.id, row.triton_code) for row in pairs]
    return {row.id.removeprefix("pair_"): set(row.marks) for row in marked}


def test_the_best_pairs_are_labelled() -> None:
    fast = pair("fast", timings=(make_timing(candidate=50.0),), verdict=make_verdict(launches=2))
    slow = pair("slow", timings=(make_timing(candidate=90.0),), purity=Purity.MIXED, extern_ops=("aten.convolution",))
    short = pair("short", triton_code=TRITON_CODE)
    assert marks(fast, slow, short) == {"fast": {"fastest"}, "slow": set(), "short": {"shortest", "purest"}}


def test_a_single_pair_of_a_module_has_no_label() -> None:
    other = pair("other", python_code="another module")
    assert marks(pair("one", timings=(make_timing(),)), other) == {"one": set(), "other": set()}


def test_ties_go_to_the_smallest_id() -> None:
    a, b = pair("a"), pair("b")
    assert marks(a, b) == marks(b, a) == {"a": {"shortest", "purest"}, "b": set()}


def test_incomparable_timings_make_no_pair_the_fastest() -> None:
    timing = make_timing(candidate=50.0)
    other_gpu = replace(timing, environment=replace(timing.environment, device="NVIDIA A100"))
    for other in (other_gpu, replace(timing, suspect="too fast"), make_timing(candidate=0.0)):
        labels = marks(pair("a", timings=(timing,)), pair("b", timings=(other,)), pair("c"))
        assert not any("fastest" in those for those in labels.values())


def test_near_copies_of_the_compilers_kernel_are_labelled() -> None:
    near = pair("near", distillation=(make_distillation(similarity=0.9),))
    own = pair("own", distillation=(make_distillation(similarity=0.5),))
    assert marks(near) == {"near": {"near_lowered"}}
    assert marks(own)["own"] == set()
