"""Planned trials, and the tensors that are drawn for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernelquarry.pipeline.sandbox.inputs import draw_state
from kernelquarry.pipeline.schema.records import Purity, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.task import Task, draw, nudges, plan

TASK = Task(
    id="mod_x", python_code="", triton_code="one", init_args="[]",
    workloads=tuple(Workload((TensorSpec("x", (rows, 8), "float32"),), '[{"tensor":0}]') for rows in (4, 5)),
    state=(StateSpec("weight", "parameter", (8,), "float32", 0.0, 1.0, -1.0),),
    kernels=(), purity=Purity.PURE, extern_ops=(), shape_general=True,
)  # fmt: skip
BY_MODEL = replace(TASK, by_model=True)


def test_the_seeds_of_a_lowered_candidate_start_at_zero() -> None:
    trials = plan(TASK)
    assert [trial.seed for trial in trials] == list(range(len(trials)))
    drawn = draw(TASK, trials)
    for key in (0, 1):
        assert torch.equal(drawn[f"state.{key}.weight"], draw_state(TASK.state, key)["weight"])


def test_a_model_s_source_determines_the_seeds() -> None:
    one, same, other = (plan(task) for task in (BY_MODEL, BY_MODEL, replace(BY_MODEL, triton_code="two")))
    assert one == same
    assert not {trial.seed for trial in one} & {trial.seed for trial in other}
    drawn, drawn_for_other = draw(BY_MODEL, one), draw(BY_MODEL, other)
    assert drawn.keys() == drawn_for_other.keys()
    assert not any(torch.equal(drawn[name], drawn_for_other[name]) for name in drawn)


def test_a_model_s_trials_alternate_between_two_sets_of_weights() -> None:
    states = [trial.state for trial in plan(BY_MODEL)]
    assert states == ["0", "1"] * (len(states) // 2) + ["0"] * (len(states) % 2)


def test_a_model_s_candidate_gets_zeros_and_no_special_values() -> None:
    kinds = {trial.distribution for trial in plan(BY_MODEL)}
    assert {"sparse", "assorted"} <= kinds and not kinds & {"special", "shifted_strided"}
    assert not {"sparse", "assorted"} & {trial.distribution for trial in plan(TASK)}


@pytest.mark.parametrize(
    ("text", "is_special"),
    [("torch.isnan(x)", True), ("x.nan_to_num(0.0)", True), ("torch.isnan(y)", False), ("x.softmax(-1)", False)],
)
def test_a_model_s_candidate_gets_nan_where_the_module_expects_it(text: str, is_special: bool) -> None:
    trials = plan(replace(BY_MODEL, python_code=text))
    assert ("special" in {trial.distribution for trial in trials}) is is_special


def test_halves_are_drawn_where_the_module_rounds() -> None:
    task = replace(BY_MODEL, python_code="torch.round(x)")
    (place,) = (place for place, trial in enumerate(plan(task)) if trial.distribution == "named")
    drawn = draw(task, plan(task))[f"input.{place}.0"]
    assert (drawn == 0.5).any() and (drawn == 2.5).any()


def test_a_candidate_with_an_fft_gets_no_nan() -> None:
    mixed = replace(TASK, purity=Purity.MIXED, extern_ops=("_fft_r2c", "copy"))
    with_nan, without = ([trial.distribution for trial in plan(task)] for task in (TASK, mixed))
    assert with_nan.count("special") == 1 and [kind for kind in with_nan if kind != "special"] == without


def planned(*sizes: tuple[int, int]) -> dict[str, set[tuple[int, ...]]]:
    """The shapes of a model's trials by distribution."""
    workloads = tuple(Workload((TensorSpec("x", shape, "float32"),), '[{"tensor":0}]') for shape in sizes)
    task, shapes = replace(BY_MODEL, workloads=workloads), dict[str, set[tuple[int, ...]]]()
    for trial in plan(task):
        shapes.setdefault(trial.distribution, set()).add(task.calls[trial.workload].tensors[0].shape)
    return shapes


@pytest.mark.parametrize("kind", ["shifted", "faint"])
def test_values_of_one_sign_are_drawn_where_a_block_is_longer_than_a_row(kind: str) -> None:
    assert planned((4, 64), (4, 128), (5, 50))[kind] == {(5, 50)}
    assert planned((5, 50), (4, 128), (6, 70))[kind] == {(5, 50)}
    assert planned((4, 64), (8, 128))[kind] == {(4, 64), (17, 129)}
    assert planned((6, 50), (6, 50))[kind] == {(6, 50)}


def test_constants_of_a_model_s_source_are_drawn() -> None:
    task = replace(BY_MODEL, triton_code="x == 42.0")
    (place,) = (place for place, trial in enumerate(plan(task)) if trial.distribution == "named")
    drawn = draw(task, plan(task))[f"input.{place}.0"]
    assert all((drawn == value).any() for value in (42.0, 42 * (1 - 2.0**-20), 42 * (1 + 2.0**-20)))
    assert (drawn >= 42).all(dim=1).any() and (drawn < 41).any()


@pytest.mark.parametrize("other", [{"by_model": False}, {"python_code": "x == 42"}, {"triton_code": "x == 3"}])
def test_constants_of_other_sources_are_not_drawn(other: dict[str, object]) -> None:
    task = replace(BY_MODEL, triton_code="x == 42.0")
    assert "named" not in {trial.distribution for trial in plan(replace(task, **other))}


def test_a_sequential_sum_of_a_whole_input_has_a_larger_nudge() -> None:
    rows = replace(TASK, workloads=(replace(TASK.workloads[0], tensors=(TensorSpec("x", (1000, 64), "float32"),)),))
    assert nudges(rows) == (1, 1)
    assert nudges(rows, rows.workloads)[1] > 20


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_task_is_half_with_half_modules_or_inputs(dtype: str) -> None:
    given = replace(TASK, workloads=(replace(TASK.workloads[0], tensors=(TensorSpec("x", (4, 8), dtype),)),))
    assert not TASK.is_half and given.is_half and replace(TASK, dtype=dtype).is_half
