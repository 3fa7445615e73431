"""Trials are drawn from a seed: the same bytes on every machine, without values that hide mistakes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelquarry.pipeline.sandbox.inputs import DISTRIBUTIONS, draw_far_state, draw_inputs, draw_state, echo
from kernelquarry.pipeline.schema.records import StateSpec, TensorSpec, Workload


def workload(*specs: TensorSpec) -> Workload:
    return Workload(tensors=specs, args="[]")


def floats(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec("x", shape, dtype)


def digest(tensors: list[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(t.contiguous().view(torch.uint8).numpy().tobytes() for t in tensors)).hexdigest()[
        :16
    ]


def test_bytes_are_the_same_on_every_machine() -> None:
    spec = workload(floats(7, 5), TensorSpec("i", (11,), "int64", 3, 9), TensorSpec("b", (13,), "bool"))
    drawn = {name: digest(draw_inputs(spec, name, 5)) for name in DISTRIBUTIONS}
    assert drawn == {
        "normal": "cbc3ca03ce452de3",
        "scaled": "72ad611644a32e8a",
        "shifted": "deb4e31bfb4e2c3a",
        "shifted_strided": "deb4e31bfb4e2c3a",
        "faint": "12ba0a042a27526d",
        "small": "8410e066379a1cd9",
        "beyond": "70a5568f4bb2f40f",
        "heavy_tailed": "777fa4c1f2e99c3f",
        "sparse": "755307e135869fc6",
        "assorted": "24fe8aa6190a57d9",
        "columns": "9b172a1d6b92c117",
        "level": "29fad9d36af09da2",
        "ending": "4d7f48531632c6d9",
        "ends": "e8c1b00754133b79",
        "huge": "39146dd1f645062e",
        "masked": "a4638915f06f2817",
        "padded": "1ef2bbe88a4039d3",
        "echoed": "cbc3ca03ce452de3",
        "special": "842d3b4ccddae91b",
    }


@pytest.mark.parametrize("distribution", ["assorted", "columns", "masked", "padded"])
def test_masks_have_rows_that_are_padded_at_either_end(distribution: str) -> None:
    (mask,) = draw_inputs(workload(TensorSpec("b", (2, 3, 40), "bool")), distribution, 5)
    starts, ends = ((mask ^ negated).long().cummin(-1)[0].sum(-1) for negated in (True, False))
    padded = (starts + mask.sum(-1) == 40), (ends == mask.sum(-1))
    assert all(kind.any() for kind in padded) and mask.any(-1).all() and not mask.all(-1).any()


def test_small_numbers_are_small_throughout() -> None:
    (x,) = draw_inputs(workload(floats(30, 100)), "small", 0)
    assert 1e-7 < x.std() < 1e-6 and x.abs().max() < 1e-5


def test_numbers_beyond_int32_are_drawn() -> None:
    (x,) = draw_inputs(workload(floats(30, 100)), "beyond", 0)
    assert (x.abs() > 1 << 31).double().mean() > 0.5 and x.isfinite().all()


def test_named_numbers_are_among_the_values_of_floats_and_of_indices_that_may_be_so() -> None:
    spec = workload(floats(12, 40), TensorSpec("i", (90,), "int64", 3, 1000))
    drawn = draw_inputs(spec, "named", 5, (42.0, -1e4, 2000.0))
    assert digest(drawn) == digest(draw_inputs(spec, "named", 5, (42.0, -1e4, 2000.0)))
    values, indices = drawn
    assert all((values == number).any() for number in (42.0, -1e4, 2000.0))
    assert (values <= -1e4).all(dim=1).any() and (values >= 2000).all(dim=1).any()
    assert (indices == 42).sum() > 20 and indices.max() < 1000 and len(indices.unique()) > 10


def test_named_needs_a_number() -> None:
    with pytest.raises(ValueError, match="named"):
        draw_inputs(workload(floats(3)), "named", 5)


def test_a_tensor_does_not_depend_on_its_neighbours() -> None:
    (alone,) = draw_inputs(workload(floats(6)), "normal", 1)
    first, second = draw_inputs(workload(floats(6), floats(6)), "normal", 1)
    assert torch.equal(alone, first)
    assert not torch.equal(first, second)


@given(seed=st.integers(0, 10**6), other=st.integers(0, 10**6))
def test_inputs_depend_on_the_seed(seed: int, other: int) -> None:
    left, right = (draw_inputs(workload(floats(32)), "normal", s)[0] for s in (seed, other))
    assert torch.equal(left, right) == (seed == other)


@pytest.mark.parametrize(
    ("distribution", "mean", "deviation"),
    [("normal", 0, 1), ("shifted", 32, 1)],
)
def test_moments(distribution: str, mean: float, deviation: float) -> None:
    (x,) = draw_inputs(workload(floats(200, 100)), distribution, 0)
    assert abs(x.mean().item() - mean) < 0.03 * deviation
    assert abs(x.std().item() / deviation - 1) < 0.02


@pytest.mark.parametrize("shape", [(4, 2000), (1, 4, 40, 50)])
@pytest.mark.parametrize(("distribution", "scales"), [("scaled", (-50, 5)), ("faint", (-8, -20))])
def test_slices_have_scales_far_apart(distribution: str, scales: tuple[int, int], shape: tuple[int, ...]) -> None:
    (x,) = draw_inputs(workload(floats(*shape)), distribution, 0)
    deviations = x.reshape(4, -1).std(dim=1)
    assert torch.allclose(deviations, torch.tensor([2.0**scale for scale in scales * 2]), rtol=0.1)


def test_half_of_sparse_values_and_every_other_slice_are_zeros() -> None:
    (x,) = draw_inputs(workload(floats(4, 2000)), "sparse", 0)
    shares = (x == 0).double().mean(dim=1)
    assert shares[1] == shares[3] == 1 and ((shares[::2] - 0.5).abs() < 0.05).all()


def test_sparse_integers_have_both_ends_of_their_range() -> None:
    (x,) = draw_inputs(workload(TensorSpec("i", (3, 5), "int64", 3, 10**9)), "sparse", 0)
    assert x.min() == 3 and x.max() == 10**9 - 1


@pytest.mark.parametrize("shape", [(42, 100), (3, 14, 100), (1400,)])
def test_assorted_rows_are_of_fourteen_kinds(shape: tuple[int, ...]) -> None:
    (x,) = draw_inputs(workload(floats(*shape)), "assorted", 0)
    rows = list(x.reshape(-1, 100)) if len(shape) > 1 else list(x.chunk(14))
    found = [kinds_of(row) for row in rows]
    assert found == found[:14] * (len(rows) // 14) and set.union(*found[:14]) == KINDS.keys()


def test_each_run_of_columns_is_of_one_kind_in_all_rows() -> None:
    (x,) = draw_inputs(workload(floats(7, 4200)), "columns", 0)
    found = [[kinds_of(part) for part in row.chunk(14)] for row in x]
    assert found == found[:1] * 7 and set.union(*found[0]) == KINDS.keys()


def test_some_assorted_rows_are_ones_and_some_are_bytes() -> None:
    (x,) = draw_inputs(workload(floats(420, 100)), "assorted", 0)
    ones, whole = (x == 1).all(dim=1), (x == x.floor()).all(dim=1)
    assert 3 < ones.sum() < 15 and 3 < (whole & (x.max(dim=1).values == 255)).sum() < 15


def test_masks_have_rows_with_few_elements() -> None:
    (mask,) = draw_inputs(workload(TensorSpec("b", (90, 200), "bool")), "assorted", 5)
    counts = mask.sum(-1)
    assert 5 < (counts < 30).sum() < 25 and counts.min() > 0


def kinds_of(row: torch.Tensor) -> set[str]:
    return {name for name, holds in KINDS.items() if holds(row)}


KINDS: dict[str, Callable[[torch.Tensor], Any]] = {
    "alike": lambda row: (row == row[0]).all() and row[0] != 0,
    "whole": lambda row: (row == row.floor()).all() and row.abs().max() < 256 and len(row.unique()) > 2,
    "twice": lambda row: row.min() > 0 and (row[: len(row) // 2] == row[-(len(row) // 2) :]).all() and row.max() > 3,
    "of one size": lambda row: row.min() > 3 and row.max() < 3 * row.min(),
    "far below": lambda row: row.max() < -50,
    "large": lambda row: row.abs().max() > 400 and row.min() < 0 < row.max(),
    "tiny": lambda row: row.abs().max() < 1e-10,
    "plain": lambda row: -4 < row.min() < 0 < row.max() < 4 and row.abs().unique().numel() == len(row),
    "ascending": lambda row: (row.diff() >= 0).all() and row[-1] > row[-2] > 0.99999 * row[-1],
    "zeros first": lambda row: (row[: len(row) // 3] == 0).all() and (row[len(row) // 3 + 1 :] != 0).all(),
    "one number": lambda row: (row != 0).sum() == 1 and row.max() > 1,
    "one above 0": lambda row: (row > 0).sum() == 1 and (row < 0).sum() == len(row) - 1,
    "in balance": lambda row: (row[1:] == -row[:-1]).all() and row[0] != 0,
    "zeros last": lambda row: (row[-(len(row) // 3) :] == 0).all() and (row[: len(row) // 2] != 0).all(),
}


def test_masked_rows_begin_with_a_number_and_have_a_run_of_infinities() -> None:
    (x,) = draw_inputs(workload(floats(33, 300)), "masked", 0)
    runs = x.isneginf()
    assert runs.any(dim=1).nonzero().flatten().tolist() == [0, 16, 32] and not runs[:, 0].any()
    assert (runs.sum(dim=1)[::16] == 100).all() and x[~runs].isfinite().all()


def test_padded_rows_begin_with_infinities_in_turn() -> None:
    (x,), (one,) = (draw_inputs(workload(floats(rows, 300)), "padded", 0) for rows in (65, 4))
    runs = x.isneginf()
    assert runs[:, 0].nonzero().flatten().tolist() == [16, 48] and (runs.sum(dim=1)[::16] == 100).all()
    assert one.isneginf()[:, 0].tolist() == [True, False, False, False]


def test_masked_labels_are_among_the_numbers_that_stand_for_none() -> None:
    labels = TensorSpec("i", (400,), "int64", 0, 9)
    (x,), (plain,) = (draw_inputs(workload(labels), "masked", 0, numbers) for numbers in ((-100,), ()))
    assert 60 < (x == -100).sum() < 140 and plain.min() >= 0
    (narrow,) = draw_inputs(workload(TensorSpec("i", (400,), "uint8", 0, 9)), "masked", 0, (-100,))
    assert narrow.max() < 9, "the dtype does not hold the number"


def test_assorted_inputs_that_may_be_multiplied_share_their_range() -> None:
    alone, *several = (
        draw_inputs(workload(*each), "assorted", 0) for each in ([floats(80, 100)], [floats(80, 100)] * 2)
    )
    assert alone[0].abs().max() > 1 << 18
    assert all(1 << 12 < x.abs().max() < 1 << 14 for x in several[0])


def test_level_rows_are_of_the_same_kinds_and_of_one_order_of_magnitude() -> None:
    (x,) = draw_inputs(workload(floats(28, 100)), "level", 0)
    sizes = x.abs().max(-1).values
    assert sizes.max() < 2000 and (sizes > 0.1).sum() == 26, "but for two tiny rows"
    assert set.union(*map(kinds_of, x)) == KINDS.keys() - {"large"}


def test_the_last_number_of_a_row_counts_in_its_sum() -> None:
    (x,) = draw_inputs(workload(floats(3, 4097)), "ending", 0)
    assert ((x[:, -1] ** 2) > 0.01 * (x**2).sum(-1)).all() and (x.argmax(-1) == 4096).all()


def test_rows_echo_earlier_inputs_and_weights() -> None:
    specs = floats(4, 8), floats(6, 8), TensorSpec("z", (4, 8), "float32", 0, 1)
    x, y, bounded = draw_inputs(workload(*specs), "echoed", 0)
    own, before = y.clone(), bounded.clone()
    weight = torch.arange(1.0, 9.0)
    echo([x, y, bounded], specs, [torch.arange(3), weight])
    assert (x[1::2, ::3] == weight[::3]).all() and x[1::2].allclose(weight, rtol=1e-3)
    assert (x[1::2] > weight).sum() == 2 * 5, "next to the others"
    assert (y[::3] == own[::3]).all(), "every third row is its own"
    assert y[1].allclose(x[1], rtol=1e-3) and y[4].allclose(x[0], rtol=1e-3), "of the input before it, repeated"
    assert y[2::3].allclose(weight, rtol=1e-3) and (bounded == before).all()


def test_assorted_values_are_finite_in_half() -> None:
    (x,) = draw_inputs(workload(floats(40, 100, dtype="float16")), "assorted", 0)
    assert x.isfinite().all()


@pytest.mark.parametrize("shape", [(2000,), (1, 2000)])
def test_a_tensor_of_one_slice_has_one_scale(shape: tuple[int, ...]) -> None:
    (x,) = draw_inputs(workload(floats(*shape)), "scaled", 0)
    assert abs(x.std().item() * 2**50 - 1) < 0.1


def test_faint_values_are_negative() -> None:
    (x,) = draw_inputs(workload(floats(200, 100)), "faint", 0)
    assert (x < 0).double().mean() > 0.999


@given(size=st.integers(8, 400), seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "float16", "bfloat16"]))
def test_special_values_are_few_and_far_apart(size: int, seed: int, dtype: str) -> None:
    (x,) = draw_inputs(workload(floats(size, dtype=dtype)), "special", seed)
    quarter = size // 4
    nan, infinite, zero, negative = x[: 4 * quarter].reshape(4, quarter)
    assert nan.isnan().sum() == 1 and infinite.isposinf().sum() == 1 and negative.isneginf().sum() == 1
    assert ((zero == 0) & zero.signbit()).sum() == 1
    assert x.isfinite().sum() == size - 3


def test_small_tensors_have_no_special_values() -> None:
    drawn = draw_inputs(workload(floats(7), floats(), floats(0, 3)), "special", 0)
    assert all(value.isfinite().all() for value in drawn)


def test_few_values_dominate_a_heavy_tail() -> None:
    (x,) = draw_inputs(workload(floats(10000)), "heavy_tailed", 0)
    squares = x.square().sort(descending=True).values
    assert squares[:1000].sum() > 0.7 * squares.sum()


def test_sums_have_to_round() -> None:
    """Values with few bits would add up exactly, and a sum in lower precision would look right."""
    (x,) = draw_inputs(workload(floats(1000)), "normal", 0)
    assert x.sum().double() != x.double().sum()


@given(low=st.integers(-5, 5), size=st.integers(1, 40), distribution=st.sampled_from(sorted(DISTRIBUTIONS)))
def test_integers_stay_in_their_range(low: int, size: int, distribution: str) -> None:
    (x,) = draw_inputs(workload(TensorSpec("i", (300,), "int64", low, low + size)), distribution, 0)
    assert x.dtype == torch.int64
    assert low <= x.min() and x.max() < low + size
    assert size == 1 or len(x.unique()) > 1


@pytest.mark.parametrize("distribution", [name for name in DISTRIBUTIONS if name not in ("special", "ends")])
def test_floats_with_bounds_stay_within_them(distribution: str) -> None:
    spec = TensorSpec("x", (40, 50), "float32", low=-1, high=2)
    values = draw_inputs(Workload((spec,), "[]"), distribution, seed=3)[0]
    assert float(values.min()) > -1 and float(values.max()) < 2
    assert values.unique().numel() > 1


def test_the_ends_of_a_range_are_drawn_where_there_is_one() -> None:
    specs = TensorSpec("x", (40, 50), "float32", low=-1, high=2), floats(40, 50)
    x, plain = draw_inputs(workload(*specs), "ends", 3)
    assert x.min() == -1 and x.max() == 2 and 800 < ((x > -1) & (x < 2)).sum() < 1200
    assert plain.min() == 0 and plain.max() == 1


def test_huge_numbers_fit_float16_and_their_sums_do_not() -> None:
    (x,) = draw_inputs(workload(floats(400, dtype="float16")), "huge", 0)
    assert x.isfinite().all() and (x + x.abs().max()).isinf().any() and x.min() < 0


def test_booleans_take_both_values() -> None:
    (x,) = draw_inputs(workload(TensorSpec("b", (40,), "bool")), "normal", 0)
    assert 5 < x.sum() < 35


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floating_dtypes(dtype: str) -> None:
    (x,) = draw_inputs(workload(floats(4, dtype=dtype)), "normal", 0)
    assert x.dtype == getattr(torch, dtype)


def test_undrawable_specs_are_refused() -> None:
    with pytest.raises(ValueError, match="complex64"):
        draw_inputs(workload(floats(4, dtype="complex64")), "normal", 0)
    with pytest.raises(ValueError, match="uniform"):
        draw_inputs(workload(floats(4)), "uniform", 0)


def entry(
    kind: str = "parameter", dtype: str = "float32", mean: float = 0.0, std: float = 0.0, low: float = 0.0
) -> StateSpec:
    return StateSpec("s", kind, (1000,), dtype, mean, std, low)


def redrawn(spec: StateSpec) -> torch.Tensor:
    return draw_state((spec,), 0)["s"]


def test_a_weight_keeps_its_scale() -> None:
    values = redrawn(entry(mean=0.1, std=0.3, low=-0.5))
    assert abs(values.mean() - 0.1) < 0.05 and abs(values.std() - 0.3) < 0.03


def test_a_tiny_weight_is_made_to_count() -> None:
    assert redrawn(entry(std=1e-5, low=-1e-5)).std() > 0.01


def test_a_scale_of_one_becomes_many() -> None:
    values = redrawn(entry(mean=1.0, low=1.0))
    assert values.min() >= 0.5 and values.max() <= 1.5 and values.std() > 0.2


def test_a_bias_of_zero_takes_both_signs() -> None:
    values = redrawn(entry())
    assert values.min() < -0.5 and values.max() > 0.5


@pytest.mark.parametrize(
    "spec", [entry("buffer", mean=1.0, low=1.0), entry("buffer"), entry(mean=0.5, std=0.3, low=0.01)]
)
def test_positive_weights_stay_positive(spec: StateSpec) -> None:
    values = redrawn(spec)
    assert values.min() >= 0 and values.std() > 0.05


def test_complex_parameters_change_in_both_parts() -> None:
    (values,) = draw_state((entry(dtype="complex64", mean=1.0, low=1.0),), 0).values()
    assert values.dtype == torch.complex64 and values.real.std() > 0.2 and values.imag.std() > 0.2
    spec = entry(dtype="complex64", std=0.3, low=-1.0)
    assert torch.equal(draw_far_state((spec,), 0)["s"], redrawn(spec))


@pytest.mark.parametrize(
    "spec",
    [
        entry("buffer", "int64"),
        entry("buffer", "bool"),
        entry("buffer", "complex64"),
        entry("buffer", mean=0.3, std=0.4),  # a table or a mask
        entry("buffer", mean=float("-inf"), low=float("-inf")),
        entry(mean=float("nan")),
    ],
)
def test_tables_masks_and_counters_keep_the_constructors_values(spec: StateSpec) -> None:
    assert draw_state((spec,), 0) == {}


def test_a_single_value_has_no_deviation() -> None:
    spec = StateSpec("temperature", "parameter", (), "float32", 4.6, float("nan"), 4.6)
    value = draw_state((spec,), 0)["temperature"]
    assert value.shape == () and 2.3 <= value.item() < 6.9


def test_flipped_buffers_have_either_sign_and_a_single_parameter_is_large() -> None:
    state = (
        StateSpec("mean", "buffer", (40,), "float32", 0.0, 0.0, 0.0),
        StateSpec("running_var", "buffer", (40,), "float32", 1.0, 0.0, 1.0),
        StateSpec("scale", "parameter", (), "float32", 2.0, 0.0, 2.0),
        StateSpec("weight", "parameter", (5, 8), "float32", 0.0, 1.0, -1.0),
    )
    drawn, far = (draw_far_state(state, 0, flipped=flipped) for flipped in (True, False))
    assert [(each["weight"] == 0).all(dim=1).tolist() for each in (drawn, far)] == [[False] * 4 + [True], [False] * 5]
    assert drawn["mean"].min() < 0 < drawn["mean"].max() and far["mean"].min() >= 0
    assert drawn["running_var"].min() > 0
    assert drawn["scale"] >= 8 and far["scale"] < 0
