"""Counter-examples are as small as possible, and can be drawn again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from corpus import load_case
from factories import make_candidate, make_probed

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.judge import Element
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, CounterExample, TensorSpec, Workload
from kernelquarry.transforms.verify import Task, VerifySettings, verify
from kernelquarry.transforms.verify.counterexample import counter_examples
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import Call, PlannedTrial
from kernelquarry.transforms.verify.verify_candidate import check_call

SETTINGS = VerifySettings(target="")
TRIAL = PlannedTrial(1, 4, "heavy_tailed")
Shape = tuple[int, ...]


def workload(*shape: int) -> Workload:
    return Workload((TensorSpec("x", shape, "float32"),), '[{"tensor":0}]')


def make_task(*shapes: Shape, **overrides: object) -> Task:
    candidate = make_candidate(make_probed(workloads=tuple(workload(*shape) for shape in shapes)), **overrides)
    return Task.of_candidate(candidate)


def search(
    task: Task, fails: Callable[[Shape], bool], rejected: Rejected | None = None, again: Reason = Reason.WRONG_VALUES
) -> tuple[list[Shape], list[Shape]]:
    """Search for counter-examples; return the shapes that were tried, and the shapes of the counter-examples."""
    tried: list[Shape] = []

    def check(call: Call) -> None:
        (shape,) = (spec.shape for spec in call.task.workloads[0].tensors)
        tried.append(shape)
        assert call.task.triton_code == task.triton_code
        if fails(shape):
            raise Rejected(again, "found", call.trial, Element("output 0[1]", 1.0, math.nan))

    examples = counter_examples(task, rejected or Rejected(Reason.WRONG_VALUES, "", TRIAL), check)
    return tried, [spec.shape for example in examples for spec in example.workload.tensors]


def test_most_failures_show_in_the_smallest_call_at_once() -> None:
    assert search(make_task((5, 8), (40, 8)), lambda shape: True) == ([(2, 8)], [(2, 8)])


@pytest.mark.parametrize("first", [4, 9, 33, 64, 65, 90])
def test_a_failure_from_a_size_on_is_shown_at_that_size(first: int) -> None:
    """The search has seen that the next smaller size passes, or has reached the minimum."""
    tried, shapes = search(make_task((5, 8, 7), (40, 8, 90)), lambda shape: shape[2] >= first)
    assert shapes == [(2, 8, first)]
    assert (2, 8, first - 1) in tried or first - 1 <= 3


def test_both_sizes_that_matter_are_reduced() -> None:
    tried, found = search(make_task((5, 4), (9, 14)), lambda shape: shape[0] >= 5 and shape[1] >= 6)
    assert found == [(5, 6)] and len(tried) <= 12


def test_the_number_of_tries_is_limited() -> None:
    shapes = ((5, 6, 7, 8), (4000, 3000, 2000, 1000))
    tried, found = search(make_task(*shapes), lambda shape: min(shape) >= 77)
    assert len(tried) == 12
    assert min(found[0]) >= 77, "the counter-example was seen to fail"


def test_a_call_that_passes_at_all_smaller_sizes_is_kept() -> None:
    assert search(make_task((5, 8), (40, 8)), lambda shape: shape == (40, 8))[1] == [(40, 8)]


def test_a_candidate_of_one_shape_keeps_that_shape() -> None:
    task = make_task((5, 8), (40, 8), shape_general=False)
    rejected = Rejected(Reason.WRONG_VALUES, "", PlannedTrial(0, 0, "normal"))
    assert search(task, lambda shape: True, rejected) == ([(5, 8)], [(5, 8)])


def test_there_is_no_example_if_no_single_call_fails() -> None:
    assert search(make_task((5, 8), (40, 8)), lambda shape: False)[1] == []


def test_a_failure_for_another_reason_does_not_count() -> None:
    assert search(make_task((5, 8), (40, 8)), lambda shape: True, again=Reason.ORACLE_FAILED)[1] == []


def test_the_search_ends_after_a_timeout() -> None:
    tried, found = search(make_task((5, 8), (40, 8)), lambda shape: True, again=Reason.TIMED_OUT)
    assert len(tried) == 1 and found == []


def test_without_a_failing_trial_the_workloads_take_turns() -> None:
    rejected = Rejected(Reason.DOES_NOT_RUN, "raised")
    task = make_task((5, 8), (40, 8))
    assert search(task, lambda shape: shape[0] > 5, rejected, Reason.DOES_NOT_RUN)[1] == [(6, 8)]


@pytest.mark.parametrize("reason", [Reason.DOES_NOT_COMPILE, Reason.OUTPUT_NOT_FROM_KERNEL, Reason.IMPOSTOR_PASSES])
def test_reasons_that_no_single_call_shows_have_no_example(reason: Reason) -> None:
    assert search(make_task((5, 8), (40, 8)), lambda shape: True, Rejected(reason, "")) == ([], [])


@pytest.mark.parametrize(
    ("message", "published"),
    [
        (
            "OSError: [Errno 30] Read-only: '/home/me/.venv/lib/tl.py'",
            "OSError: [Errno 30] Read-only: 'tl.py'",
        ),
        ("TypeError: <object at 0x7fc8cda6aed0>", "TypeError: <object at 0x?>"),
        ("output 0 is a/b of 1/2, error 1e-06", "output 0 is a/b of 1/2, error 1e-06"),
    ],
)
def test_evidence_hides_folders_and_addresses(message: str, published: str) -> None:
    rejected = Rejected(Reason.DOES_NOT_RUN, message, TRIAL)
    assert (rejected.found, rejected.evidence) == (published, f"workload 1, heavy_tailed: {published}")


# with a sandbox


def evil(name: str) -> Candidate:
    return load_case("evil", name).candidate


def rejected(candidate: Candidate, sandbox: Sandbox) -> list[CounterExample]:
    outcome = verify(candidate, sandbox, SETTINGS)
    assert isinstance(outcome, Dropped), outcome
    return list(outcome.counter_examples)


def fails(candidate: Candidate, example: CounterExample, sandbox: Sandbox) -> bool:
    call = Call.of(Task.of_candidate(candidate), example.workload, example.seed, example.distribution)
    try:
        check_call(call, sandbox, SETTINGS)
    except Rejected as rejected:
        assert (rejected.found, rejected.reason) == (example.found, Reason.WRONG_VALUES)
        return True
    return False


def test_a_kernel_of_one_block_fails_just_beyond_the_block(sandbox: Sandbox) -> None:
    """The kernel has a block of 64 columns, and the row's inputs have 50, 23 and 90."""
    candidate = evil("single_block_of_64_columns")
    (example,) = rejected(candidate, sandbox)
    ((rows, columns),) = (spec.shape for spec in example.workload.tensors)
    assert rows == 2 and columns in (65, 66), "a column may be too small to count"
    assert example.output in (f"output 0[{row}, {column}]" for row in (0, 1) for column in range(64, columns))
    assert example.expected > 0 == example.actual
    assert fails(candidate, example, sandbox), "drawn again, it fails again"
    fewer = (TensorSpec("x0", (2, columns - 1), "float32"),)
    smaller = replace(example, workload=replace(example.workload, tensors=fewer))
    assert not fails(candidate, smaller, sandbox)


def test_an_example_keeps_nan(sandbox: Sandbox) -> None:
    (example,) = rejected(evil("all_nan"), sandbox)
    assert example.output == "output 0[0, 0]" and math.isnan(example.actual) and 0 < example.expected < 1


def test_an_example_of_a_wrong_contract_has_no_element(sandbox: Sandbox) -> None:
    (example,) = rejected(evil("wrong_dtype"), sandbox)
    assert (example.output, example.expected, example.actual) == ("", 0.0, 0.0)
    assert example.found == "output 0 is torch.float64 in place of torch.float32"


def test_a_cached_answer_has_no_example(sandbox: Sandbox) -> None:
    """The candidate repeats its first answer, so each single call is right."""
    assert rejected(evil("caches_answer_by_shape"), sandbox) == []


def test_an_example_may_have_a_reference_that_is_not_finite(sandbox: Sandbox) -> None:
    honest = load_case("honest", "softmax").candidate
    code = honest.triton_code.replace("forward(self, x):\n", "forward(self, x):\n        x = x.contiguous()\n")
    lost = code.replace("    power =", "    x = tl.where(x == x, x, 0.0)\n    power =")
    assert lost != code
    generator = replace(honest.generator, kind="inductor")  # a model's candidate gets no NaN
    (example,) = rejected(replace(honest, triton_code=lost, generator=generator), sandbox)
    assert example.distribution == "special"
    assert math.isnan(example.expected) and math.isfinite(example.actual)
