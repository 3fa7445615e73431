"""The judge separates honest rounding from mistakes, in whole tensors, slices and single elements."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kernelquarry.pipeline.sandbox.jobs.calls import ObservedCall
from kernelquarry.pipeline.sandbox.judge import ErrorBounds, contract_difference, impostor_answers, same_bytes
from kernelquarry.pipeline.sandbox.observation import MalformedReply, Observation, read_observation


def observed(*outputs: torch.Tensor, **overrides: object) -> Observation:
    fields = dict(
        tree='{"tensor":0}',
        outputs=outputs,
        strides=tuple(output.stride() for output in outputs),
        shares=("",) * len(outputs),
        mutated={},
        changed={},
        trained=(),
    )
    return Observation(**{**fields, **overrides})  # type: ignore[arg-type]


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bounds_of(exact: torch.Tensor, terms: int = 1) -> ErrorBounds:
    """Bounds around a reference whose float32 runs are off by rounding alone."""
    runs = [exact.float(), (exact * (1 + 2**-24)).float(), (exact * (1 - 2**-24)).float()]
    return ErrorBounds(observed(exact), [observed(run) for run in runs], terms)


shapes = st.lists(st.integers(1, 7), min_size=0, max_size=4).map(tuple)


@given(shape=shapes, seed=st.integers(0, 99))
def test_rounding_passes(shape: tuple[int, ...], seed: int) -> None:
    exact = randn(*shape, seed=seed)
    measure = bounds_of(exact).measure([exact.float()])
    assert measure.passes and measure.ratio < 0.5


@given(shape=shapes, seed=st.integers(0, 99), place=st.integers(0, 10**6), size=st.floats(1e-5, 1e6))
def test_one_wrong_element_fails(shape: tuple[int, ...], seed: int, place: int, size: float) -> None:
    exact = randn(*shape, seed=seed)
    wrong = exact.float().reshape(-1)
    wrong[place % len(wrong)] += size * exact.square().mean().sqrt()
    assert not bounds_of(exact).measure([wrong.reshape(shape)]).passes


@given(seed=st.integers(0, 99), power=st.integers(-40, 40))
def test_the_unit_of_the_values_does_not_matter(seed: int, power: int) -> None:
    exact, factor = randn(6, 5, seed=seed), 2.0**power
    off = exact * 1.00001
    here, there = bounds_of(exact).measure([off.float()]), bounds_of(exact * factor).measure([(off * factor).float()])
    assert math.isclose(here.ratio, there.ratio, rel_tol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_wrong_small_slice_does_not_hide_behind_a_large_one(axis: int) -> None:
    exact = randn(5, 6, 7)
    exact.select(axis, 2).mul_(1e-4)
    wrong = exact.clone()
    wrong.select(axis, 2).mul_(1.001)
    found = bounds_of(exact).measure([wrong.float()])
    assert not found.passes
    assert f"slice 2 of axis {axis}" in found.where or "nine" in found.where


def test_lost_precision_does_not_hide_behind_one_huge_value() -> None:
    exact = randn(400)
    exact[7] = 1e9
    assert not bounds_of(exact).measure([exact.half().float().where(exact < 1e8, exact.float())]).passes


def test_half_precision_fails() -> None:
    exact = randn(30, 50)
    assert not bounds_of(exact, terms=50).measure([exact.half().float()]).passes


def test_an_ill_conditioned_reference_earns_a_wider_tolerance() -> None:
    exact = randn(64, 8)
    loose = [observed((exact * (1 + off)).float()) for off in (0.0, 1e-4, -1e-4)]
    candidate = [(exact * (1 + 2e-4)).float()]
    assert ErrorBounds(observed(exact), loose, 1).measure(candidate).passes
    assert not bounds_of(exact).measure(candidate).passes


def test_long_sums_may_round_more() -> None:
    exact = randn(64)
    off = [(exact * (1 + 2e-6)).float()]
    assert not bounds_of(exact, terms=1).measure(off).passes
    assert bounds_of(exact, terms=10_000).measure(off).passes


def test_zeros_must_be_zeros() -> None:
    exact = torch.zeros(5, 5, dtype=torch.float64)
    assert bounds_of(exact).measure([torch.zeros(5, 5)]).passes
    assert not bounds_of(exact).measure([torch.full((5, 5), 1e-6)]).passes


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_special_values_stand_where_the_reference_has_them(special: float) -> None:
    exact = randn(9)
    with_special = exact.clone()
    with_special[3] = special
    assert bounds_of(with_special).measure([with_special.float()]).passes
    assert not bounds_of(with_special).measure([exact.float()]).passes
    assert not bounds_of(exact).measure([with_special.float()]).passes
    assert not bounds_of(with_special).measure([with_special.float().roll(1)]).passes


def test_infinities_have_a_sign() -> None:
    exact = torch.tensor([1.0, math.inf], dtype=torch.float64)
    assert not bounds_of(exact).measure([torch.tensor([1.0, -math.inf])]).passes


def test_overflow_of_float32_is_no_fault_of_the_candidate() -> None:
    exact = torch.tensor([1.0, 1e39], dtype=torch.float64)
    assert bounds_of(exact).measure([exact.float()]).passes


def test_a_reference_that_is_mostly_not_finite_measures_nothing() -> None:
    exact = randn(10)
    assert bounds_of(exact).is_finite
    exact[2:5] = math.nan
    assert not bounds_of(exact).is_finite


def of_runs(exact: torch.Tensor, *runs: torch.Tensor) -> ErrorBounds:
    return ErrorBounds(observed(exact), [observed(run.float()) for run in (exact, *runs)], 1)


def test_nonfinite_values_are_decided_if_honest_runs_agree() -> None:
    exact = randn(10)
    exact[2:5] = math.nan
    assert bounds_of(exact).is_decided
    other = exact.clone()
    other[2:5] = math.inf
    assert not of_runs(exact, other, exact).is_decided


@pytest.mark.parametrize("given", [0.0, math.nan, math.inf])
def test_any_value_is_accepted_where_honest_runs_disagree(given: float) -> None:
    exact = randn(40)
    exact[3] = math.inf
    other = exact.clone()
    other[3] = math.nan
    answer = exact.clone()
    answer[3] = given
    assert of_runs(exact, other, exact).measure([answer.float()]).passes
    assert of_runs(exact, exact, exact).measure([answer.float()]).passes == (given == math.inf)


def test_a_float32_overflow_that_the_oracle_lacks_is_not_required() -> None:
    exact = torch.tensor([1.0, 1e39], dtype=torch.float64)
    assert bounds_of(exact).measure([torch.tensor([1.0, 1e38])]).passes


def test_lost_precision_does_not_hide_behind_many_nans() -> None:
    exact = randn(400)
    exact[:300] = math.nan
    assert bounds_of(exact).measure([exact.float()]).passes
    assert not bounds_of(exact).measure([exact.half().float()]).passes
    some = exact.float()
    some[300:315] *= 1 + 1e-5
    found = bounds_of(torch.cat([exact[:399], torch.tensor([1e9]).double()])).measure(
        [torch.cat([some[:399], torch.tensor([1e9])])]
    )
    assert not found.passes and "nine" in found.where


@pytest.mark.parametrize(("left", "passes"), [(2.0**-60, True), (2.0**-20, False)])
def test_values_that_cancel_out_have_the_usual_scale(left: float, passes: bool) -> None:
    exact = left * randn(6, 5)
    usual, honest = bounds_of(randn(6, 5)), [observed(exact.float())] * 3
    bounds = ErrorBounds(observed(exact), honest, 1, usual=usual)
    assert bounds.measure([exact + 2.0**-26]).passes is passes
    assert not bounds.measure([exact + 2.0**-15]).passes
    assert not ErrorBounds(observed(exact), honest, 1).measure([exact + 2.0**-26]).passes
    assert ErrorBounds(observed(exact), honest, 1, usual=usual, cancels=2.0**-5).measure([exact + 2.0**-26]).passes


def test_values_of_which_no_digit_is_right_have_the_usual_scale() -> None:
    exact = 2.0**-30 * randn(6, 5)
    honest = [observed(torch.zeros(6, 5))] * 3
    assert ErrorBounds(observed(exact), honest, 1, usual=bounds_of(randn(6, 5))).measure([exact + 2.0**-24]).passes
    assert not ErrorBounds(observed(exact), honest, 1).measure([exact + 2.0**-24]).passes


def test_integers_are_right_or_wrong() -> None:
    exact = torch.arange(12).reshape(3, 4)
    bounds = ErrorBounds(observed(exact), [observed(exact)] * 3, 1)
    assert bounds.measure([exact]).passes
    assert not bounds.measure([exact.clone().fill_diagonal_(1)]).passes


def test_ties_that_rounding_decides_may_fall_either_way() -> None:
    first, second = torch.tensor([3, 5]), torch.tensor([3, 6])
    bounds = ErrorBounds(observed(first), [observed(first), observed(second), observed(first)], 1)
    assert bounds.measure([second]).passes
    assert not bounds.measure([torch.tensor([4, 5])]).passes


def test_complex_numbers_are_two() -> None:
    exact = torch.complex(randn(9, 5), randn(9, 5, seed=1))
    runs = [observed(exact.to(torch.complex64)) for _ in range(3)]
    measured = ErrorBounds(observed(exact), runs, 1)
    rounded = exact.to(torch.complex64)
    assert measured.measure([rounded * (1 + 2**-23)]).passes
    assert not measured.measure([rounded.conj()]).passes
    wrong = observed(torch.complex(rounded.real, rounded.imag + (torch.arange(45).reshape(9, 5) == 7)))
    assert measured.worst_element(wrong).name == "output 0[1, 2, 1]"


def test_the_constant_of_complex_numbers_is_their_mean() -> None:
    value = torch.complex(randn(9, 5), randn(9, 5, seed=1))
    (constant,) = impostor_answers(observed(value), [], {})["constant"]
    assert constant.dtype == value.dtype and torch.allclose(constant, value.mean())


def test_the_worst_output_decides() -> None:
    exact = (randn(8, seed=1), randn(8, seed=2))
    bounds = ErrorBounds(observed(*exact), [observed(*(e.float() for e in exact))] * 3, 1)
    found = bounds.measure([exact[0].float(), exact[1].float() + 1])
    assert not found.passes and found.where.startswith("output 1")
    assert bounds.unchanged([exact[0].float(), exact[1].float() + 1]) == [0]


def test_an_empty_output_is_right() -> None:
    assert bounds_of(randn(0, 3)).measure([torch.empty(0, 3)]).passes


PLAIN = observed(torch.zeros(4, 3))
DIFFERENCES: list[tuple[str, Callable[[], Observation], str]] = [
    ("structure", lambda: replace(PLAIN, tree='{"list":[{"tensor":0}]}'), "returns"),
    ("shape", lambda: observed(torch.zeros(3, 4)), "shape"),
    ("dtype", lambda: observed(torch.zeros(4, 3, dtype=torch.float64)), "float64"),
    ("strides", lambda: replace(PLAIN, strides=((1, 4),)), "strides"),
    ("alias", lambda: replace(PLAIN, shares=("input 0",)), "shares memory"),
    ("mutation", lambda: replace(PLAIN, mutated={0: torch.zeros(1)}), "changes inputs"),
    ("state", lambda: replace(PLAIN, changed={"running_mean": torch.zeros(3)}), "changes state"),
    ("gradients", lambda: replace(PLAIN, trained=("weight",)), "changes gradients"),
]


@pytest.mark.parametrize(
    ("changed", "words"), [case[1:] for case in DIFFERENCES], ids=[case[0] for case in DIFFERENCES]
)
def test_contract_names_what_differs(changed: Callable[[], Observation], words: str) -> None:
    assert contract_difference(PLAIN, PLAIN) == ""
    assert words in contract_difference(PLAIN, changed())


def test_a_candidate_may_be_denser_and_share_less_than_the_reference() -> None:
    view = replace(PLAIN, strides=((1, 4),), shares=("input 0",))
    assert contract_difference(view, PLAIN) == ""
    assert contract_difference(view, view) == ""


def test_outputs_of_strided_inputs_may_have_any_layout() -> None:
    reference, candidate = observed(torch.empty(3, 5)[:, :4]), observed(torch.empty(4, 3).T)
    assert "strides" in contract_difference(reference, candidate)
    assert contract_difference(reference, candidate, strided=True) == ""


def test_dimensions_of_size_one_have_no_layout() -> None:
    flat = observed(torch.zeros(4, 1))
    assert contract_difference(flat, replace(flat, strides=((1, 77),))) == ""


def test_impostors_are_other_answers_of_the_same_shape() -> None:
    eager, given_input = observed(randn(6, 4).float()), randn(6, 4, seed=1).float()
    other, dead, larger = (
        observed(randn(6, 4, seed=2).float()),
        observed(eager.outputs[0].clone()),
        observed(randn(9, 4)),
    )
    other_answers = {"other_inputs": other, "other_parameters": dead, "other_workload": larger}
    answers = impostor_answers(eager, [given_input], other_answers)
    assert sorted(answers) == ["batch_mean", "constant", "input", "other_inputs", "zeros"]
    assert answers["input"][0] is given_input
    assert answers["constant"][0].unique().numel() == 1
    assert torch.allclose(answers["batch_mean"][0][0], eager.outputs[0].mean(0))


@pytest.mark.parametrize("shape", [(1, 4), (1, 1), (1,), ()])
def test_no_impostor_is_the_right_answer(shape: tuple[int, ...]) -> None:
    """A mean over a batch of one element, or of a single number, equals the averaged value and is no impostor."""
    exact = randn(*shape)
    for name, values in impostor_answers(observed(exact.float()), [], {}).items():
        assert not bounds_of(exact).measure(values).passes, name


def test_an_impostor_answers_all_outputs() -> None:
    eager = observed(randn(6, 4).float(), randn(3).float())
    assert "input" not in impostor_answers(eager, [randn(6, 4).float()], {})


def test_bytes_tell_zeros_apart_and_not_nan_from_nan() -> None:
    assert same_bytes(observed(torch.tensor([math.nan])), observed(torch.tensor([math.nan])))
    assert not same_bytes(observed(torch.tensor([0.0])), observed(torch.tensor([-0.0])))


DESCRIPTION = {"tree": {"tensor": 0}, "strides": [[3, 1]], "shares": [""], "mutated": [], "changed": []}


def read_call(description: object) -> ObservedCall:
    """The call as the host reads it from a reply. Raises ValidationError."""
    return TypeAdapter(ObservedCall).validate_json(json.dumps(description), strict=True)


def test_a_reply_becomes_an_observation() -> None:
    tensors = {"0.output.0": torch.ones(2, 3), "0.mutated.0": torch.zeros(1), "0.mutated.1": torch.ones(1)}
    observation = read_observation(read_call({**DESCRIPTION, "mutated": [1], "changed": ["mean"]}), tensors, "0")
    assert observation.values == (tensors["0.output.0"], tensors["0.mutated.0"])
    assert observation.changed == {"mean": tensors["0.mutated.1"]}


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        {**DESCRIPTION, "strides": [[3]]},
        {**DESCRIPTION, "strides": [["3", 1]]},
        {**DESCRIPTION, "strides": [[3, 1], [1]]},
        {**DESCRIPTION, "shares": []},
        {**DESCRIPTION, "mutated": [0]},
        {**DESCRIPTION, "mutated": [True]},
        {**DESCRIPTION, "changed": "all"},
        {**DESCRIPTION, "changed": ["mean"]},
    ],
)
def test_a_malformed_reply_is_refused(broken: object) -> None:
    with pytest.raises((MalformedReply, ValidationError)):
        read_observation(read_call(broken), {"0.output.0": torch.ones(2, 3)}, "0")


def test_the_right_answer_with_nan_in_it_is_no_impostor() -> None:
    value = torch.tensor([1.0, math.nan, 3.0])
    assert "other_parameters" not in impostor_answers(
        observed(value), [], {"other_parameters": observed(value.clone())}
    )


# the element that is shown


def test_the_worst_element_of_the_worst_tensor_is_named() -> None:
    exact = [randn(4, 5), randn(3, 6, seed=1), randn(2, 2, seed=2)]
    honest = [observed(*(value.float() for value in exact[:2]), mutated={3: exact[2].float()}) for _ in range(3)]
    judge = ErrorBounds(observed(*exact[:2], mutated={3: exact[2]}), honest, 1)
    values = [value.float() for value in exact]
    values[0][1, 1] += 0.01
    values[1][2, 4] += 1.0
    values[1][0, 0] += 1e-4
    element = judge.worst_element(observed(*values[:2], mutated={3: values[2]}))
    assert (element.name, element.expected, element.actual) == (
        "output 1[2, 4]",
        exact[1][2, 4].item(),
        values[1][2, 4].item(),
    )
    values[2][1, 0] = math.nan
    element = judge.worst_element(observed(*values[:2], mutated={3: values[2]}))
    assert element.name == "input 3[1, 0]" and math.isnan(element.actual)


def test_a_nan_that_is_missing_is_named() -> None:
    exact = randn(8)
    exact[[2, 5]] = math.nan
    given = exact.float()
    given[5] = 0.0
    element = bounds_of(exact).worst_element(observed(given))
    assert element.name == "output 0[5]" and math.isnan(element.expected) and element.actual == 0.0


def test_a_number_has_no_index_and_integers_are_numbers() -> None:
    exact = torch.tensor(7)
    judge = ErrorBounds(observed(exact), [observed(exact)] * 3, 1)
    element = judge.worst_element(observed(torch.tensor(9)))
    assert (element.name, element.expected, element.actual) == ("output 0", 7.0, 9.0)


def half_bounds(exact: torch.Tensor, dtype: torch.dtype, terms: int) -> ErrorBounds:
    """Bounds around a reference whose half-precision run rounds its result and one intermediate value."""
    runs = [observed((exact * (1 + sign * 2**-24)).float()) for sign in (1, -1)]
    rounded = ((exact * 3).to(dtype).double() / 3).to(dtype)
    return ErrorBounds(observed(exact), runs, terms, rounded=observed(rounded))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@given(shape=shapes, seed=st.integers(0, 99))
def test_one_rounding_to_half_precision_passes(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> None:
    exact = randn(*shape, seed=seed)
    measure = half_bounds(exact, dtype, terms=1).measure([exact.to(dtype)])
    assert measure.passes and measure.ratio < 0.5


@pytest.mark.parametrize("terms", [1, 1 << 20])
def test_bfloat16_is_no_float16_however_much_is_summed(terms: int) -> None:
    exact = randn(16, 64)
    coarser = exact.to(torch.bfloat16).to(torch.float16)
    assert not half_bounds(exact, torch.float16, terms).measure([coarser]).passes


def test_a_long_sum_is_not_kept_in_float16() -> None:
    terms = randn(4096, 64).abs().half()
    exact, kept = terms.double().mean(0), torch.zeros(64, dtype=torch.float16)
    for term in terms:
        kept += term
    bounds = half_bounds(exact, torch.float16, terms=4096)
    assert bounds.measure([(terms.float().sum(0) / 4096).half()]).passes
    assert not bounds.measure([kept / 4096]).passes


def test_values_that_overflow_only_in_half_precision_are_not_compared() -> None:
    exact = randn(10, 10)
    exact[0, 0] = 1e6
    runs = [observed(exact.float())] * 2
    bounds = ErrorBounds(observed(exact), runs, 1, rounded=observed(exact.half()))
    assert bounds.is_decided and bounds.measure([exact.half()]).passes


def test_places_of_equals_may_be_any_where_another_of_them_counts() -> None:
    places = torch.tensor([3, 5, 7])
    tied = torch.tensor([3, 6, 7])
    bounds = ErrorBounds(observed(places), [observed(places)] * 3, 1, tied=observed(tied))
    assert bounds.measure([torch.tensor([3, 4, 7])]).passes
    assert not bounds.measure([torch.tensor([2, 5, 7])]).passes


def test_any_integer_is_accepted_and_floats_are_still_compared() -> None:
    values, places, flags = randn(8).float(), torch.arange(8), torch.ones(8, dtype=torch.bool)
    exact = observed(values.double(), places, flags)
    bounds = ErrorBounds(exact, [observed(values, places, flags)] * 3, 1, any_integer=True)
    assert bounds.measure([values, places + 1, flags]).passes
    assert not bounds.measure([values + 1, places, flags]).passes
    assert not bounds.measure([values, places, ~flags]).passes


def test_values_that_depend_on_which_of_equals_counts_may_be_any() -> None:
    exact = randn(3, 8)
    tied = exact.clone()
    tied[1, 2] += 1.0
    bounds = ErrorBounds(observed(exact), [observed(exact.float())] * 3, 1, tied=observed(tied.float()))
    assert bounds.measure([tied.float()]).passes
    other = exact.float()
    other[0] += 1.0
    assert not bounds.measure([other]).passes
