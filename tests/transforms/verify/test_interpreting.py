"""Checks in the interpreter of candidates that are right on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from corpus import load_case

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.further_checks import FurtherRuns
from kernelquarry.transforms.verify.interpreting import check_interpreted
from kernelquarry.transforms.verify.reference_run import Reference
from kernelquarry.transforms.verify.task import Task, VerifySettings, draw, plan

SETTINGS = VerifySettings(target="")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as opened:
        yield opened


def check_further(reference: Reference) -> None:
    runs = FurtherRuns.of(reference)
    runs.check_environments()
    runs.check_calls()
    runs.check_configurations()


def check(kind: str, name: str, sandbox: Sandbox, checking: Any = check_interpreted) -> None:
    task = Task.of_candidate(load_case(kind, name).candidate)
    trials = plan(task)[:1]
    checking(Reference(task, trials, draw(task, trials), sandbox, SETTINGS))


@pytest.mark.parametrize("name", ["softmax", "attention_flash", "mixed_linear"])
def test_honest_candidates_pass(name: str, sandbox: Sandbox) -> None:
    check("honest", name, sandbox)


@pytest.mark.parametrize(
    ("name", "reason", "evidence"),
    [
        ("one_column_too_many", Reason.DOES_NOT_RUN, "outside"),
        ("returns_zeros", Reason.NOT_DETERMINISTIC, "in reverse"),
        ("overwrites_input_of_next_program", Reason.NOT_DETERMINISTIC, "in reverse"),
    ],
)
def test_candidates_right_by_chance_are_rejected(name: str, reason: Reason, evidence: str, sandbox: Sandbox) -> None:
    with pytest.raises(Rejected) as raised:
        check("evil", name, sandbox)
    assert raised.value.reason is reason and evidence in raised.value.evidence


def test_a_read_outside_of_a_tensor_may_need_odd_sizes(sandbox: Sandbox) -> None:
    task = Task.of_candidate(load_case("evil", "reads_scale_past_the_end").candidate)
    first, whole = (Reference(task, t, draw(task, t), sandbox, SETTINGS) for t in (plan(task)[:1], plan(task)))
    check_interpreted(first)  # all blocks of its first workload are full
    with pytest.raises(Rejected, match="outside"):
        check_interpreted(whole)


def test_a_candidate_that_the_interpreter_cannot_run_passes(sandbox: Sandbox) -> None:
    check("evil", "imports_missing_package", sandbox)


def test_a_candidate_that_ends_the_guest_is_rejected(sandbox: Sandbox) -> None:
    with pytest.raises(Rejected, match="called once more"):
        check("evil", "exits_before_the_comparison", sandbox)


@pytest.mark.parametrize(
    "name", ["column_sums_under_spin_lock", "gelu_pruned_configurations", "two_outputs_in_one_buffer"]
)
def test_honest_candidates_pass_the_further_checks(name: str, sandbox: Sandbox) -> None:
    check("honest", name, sandbox, check_further)


@pytest.mark.parametrize(
    ("name", "reason", "evidence"),
    [
        ("kernel_counts_calls", Reason.WRONG_CONTRACT, "outlives the call"),
        ("tenth_autotune_configuration_wrong", Reason.WRONG_VALUES, "with configuration 9"),
        ("single_block_of_1024_columns", Reason.WRONG_VALUES, "for inputs"),
        ("detects_nan_in_fresh_memory", Reason.WRONG_CONTRACT, "loads scratch_ptr[0]"),
        ("wrong_when_inputs_are_one_tensor", Reason.UNVERIFIED_PATH, "one tensor"),
    ],
)
def test_candidates_right_only_in_trials_are_rejected(
    name: str, reason: Reason, evidence: str, sandbox: Sandbox
) -> None:
    with pytest.raises(Rejected) as raised:
        check("evil", name, sandbox, check_further)
    assert raised.value.reason is reason and evidence in raised.value.evidence
