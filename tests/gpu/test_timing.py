"""Timings on a GPU: all contenders are timed, and the times of honest kernels are consistent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from corpus import load_case
from factories import make_verdict

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Engine, Pair, Timing, Verified
from kernelquarry.transforms.time import TimeSettings, time

HONEST = ("softmax", "gelu", "linear", "layer_norm", "matmul_split_k_two_kernels", "attention_flash", "conv1d")


def pair(name: str, engine: Engine = Engine.TRACE) -> Pair:
    candidate = load_case("honest", name).candidate
    return flatten_verified(Verified(candidate, make_verdict(engine=engine)))


def timing(pair: Pair, sandbox: Sandbox, settings: TimeSettings | None = None) -> Timing:
    outcome = time(pair, sandbox, settings)
    assert isinstance(outcome, Kept)
    (found,) = outcome.record.timings
    return found


@pytest.mark.parametrize("name", HONEST)
def test_times_of_honest_kernels_are_consistent(sandbox: Sandbox, name: str) -> None:
    found = timing(pair(name), sandbox)
    assert (found.left_out, found.suspect, found.engine) == ("", "", Engine.TRACE), found
    assert [timed.name for timed in found.contenders] == ["eager", "compile", "candidate"]
    for timed in found.contenders:
        assert found.floor_us < timed.low_us <= timed.median_us <= timed.high_us
        assert timed.runs >= 10
    assert found.slope_us > 0 and found.over_eager > 0 and found.over_compile > 0
    assert found.environment.device.startswith(("NVIDIA", "Tesla"))


def test_the_call_is_large_enough_for_the_memory_to_be_the_limit(sandbox: Sandbox) -> None:
    found = timing(pair("softmax"), sandbox)
    candidate = found.contenders[-1]
    assert found.enlarged and found.floor_us > 5
    assert candidate.median_us < 20 * found.floor_us and candidate.median_us < 3 * found.slope_us


def test_an_untraceable_candidate_is_timed_in_the_guest(sandbox: Sandbox) -> None:
    found = timing(pair("softmax", Engine.GUEST), sandbox)
    assert (found.engine, found.slope_us, found.suspect) == (Engine.GUEST, 0.0, "")
    assert [timed.name for timed in found.contenders] == ["eager", "compile", "candidate"]


def test_kernels_for_one_size_are_timed_on_that(sandbox: Sandbox) -> None:
    found = timing(replace(pair("softmax"), shape_general=False), sandbox)
    assert (found.enlarged, found.suspect) == (False, "") and len(found.contenders) == 3


def test_a_call_that_is_too_large_gives_way_to_a_smaller_one(sandbox: Sandbox) -> None:
    found = timing(pair("softmax"), sandbox, TimeSettings(elements=1 << 33))
    elements = found.workload.tensors[0].shape
    assert found.contenders and elements[0] * elements[1] <= 1 << 31


def test_values_that_are_wrong_at_this_size_are_suspect(sandbox: Sandbox) -> None:
    honest = pair("softmax")
    wrong = honest.triton_code.replace("y = power", "y = (1.0 + (row >= 1000)) * power")
    assert wrong != honest.triton_code
    assert "are not the reference's" in timing(replace(honest, triton_code=wrong), sandbox).suspect
