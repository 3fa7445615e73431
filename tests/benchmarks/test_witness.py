"""Mutants that are killed, missed, equivalent or stillborn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pytest
import witness
from factories import GENERATOR, TRITON_CODE, make_pair, make_workload
from mutate import Fault, Mutant
from stress import CHANGES, batches, other_workloads
from witness import Finding, Outcome, find_witness, try_mutant

from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.records import Pair, TensorSpec, Workload
from kernelquarry.transforms.verify import Task, VerifySettings, further_checks
from kernelquarry.transforms.verify.further_calls import further_calls

SETTINGS = VerifySettings(target="", limits=Limits(wall_s=120, cpu_s=20))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as opened:
        yield opened


@pytest.fixture(scope="module")
def pair() -> Pair:
    """A row by a model: the kernel drops NaN and assumes contiguous inputs."""
    workloads = (make_workload(5, 8), make_workload(3, 8), make_workload(9, 8))
    return make_pair(workloads=workloads, generator=replace(GENERATOR, kind="model"))


def attempt(pair: Pair, old: str, new: str, sandbox: Sandbox) -> Finding:
    code = TRITON_CODE.replace(old, new)
    assert code != TRITON_CODE
    return try_mutant(pair, Mutant(pair.id, "planted", Fault.LAUNCH, 1, "", code), sandbox, SETTINGS)


def test_a_wrong_value_is_killed(pair: Pair, sandbox: Sandbox) -> None:
    finding = attempt(pair, "tl.maximum(", "tl.minimum(", sandbox)
    assert (finding.outcome, finding.reason, finding.witness) == (Outcome.KILLED, "wrong_values", None)


def test_a_grid_that_suffices_for_the_workloads_is_missed(
    pair: Pair, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(further_checks, "further_calls", lambda task: further_calls(task)[:1])  # a model's alone
    finding = attempt(pair, "(triton.cdiv(size, 256),)", "(1,)", sandbox)
    assert finding.outcome is Outcome.MISSED and finding.witness is not None
    assert finding.witness.where.startswith("inputs [75, 8]") and finding.witness.reason == "wrong_values"


def test_a_mask_written_the_other_way_round_is_equivalent(
    pair: Pair, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "batches", lambda task: islice(batches(task), 4))  # all of them take a while
    assert attempt(pair, "mask = index < size", "mask = size > index", sandbox) == Finding(Outcome.EQUIVALENT)


@pytest.mark.parametrize(
    ("old", "new"),
    [("class ModelNew(torch.nn.Module)", "class ModelNew(torch.nn.Modul)"), ("tl.maximum(", "tl.no_such(")],
)
def test_a_mutant_that_runs_on_no_input_is_stillborn(old: str, new: str, pair: Pair, sandbox: Sandbox) -> None:
    assert attempt(pair, old, new, sandbox).outcome is Outcome.STILLBORN


def test_an_address_out_of_bounds_is_killed(pair: Pair, sandbox: Sandbox) -> None:
    finding = attempt(pair, "tl.load(x + index, mask)", "tl.load(x + index + 1, mask)", sandbox)
    assert (finding.outcome, finding.reason) == (Outcome.KILLED, "does_not_run")


def test_an_input_on_which_the_row_fails_is_no_witness(pair: Pair, sandbox: Sandbox) -> None:
    """The row's kernel loses a NaN that the reference keeps."""
    loses = TRITON_CODE.replace(", propagate_nan=tl.PropagateNan.ALL", "")
    assert loses != TRITON_CODE
    task, wrong = Task.of_row(replace(pair, triton_code=loses)), loses.replace("tl.maximum(", "tl.minimum(")
    batch = next(batch for batch in batches(task) if "one NaN" in batch.changes)
    poisoned = batch.alone(batch.changes.index("one NaN"))
    assert find_witness(task, wrong, sandbox, SETTINGS, [poisoned]) is None
    plain = replace(poisoned, changes=("negated",))
    assert find_witness(task, wrong, sandbox, SETTINGS, [plain]) is not None


def of_one_shape(*shapes: Sequence[int]) -> Task:
    workloads = tuple(
        Workload((TensorSpec("x", (batch, 4), "float32"), TensorSpec("y", (4, batch), "float32")), "[]")
        for batch, *_ in shapes
    )
    return Task.of_row(make_pair(workloads=workloads))


def test_other_sizes_keep_what_is_the_same_in_all_workloads() -> None:
    others = list(other_workloads(of_one_shape((5,), (3,), (7,))))
    shapes = [tuple(spec.shape for spec in workload.tensors) for workload in others]
    assert ((1, 4), (4, 1)) in shapes and ((59, 4), (4, 59)) in shapes
    assert all(x == (y[1], 4) and y[0] == 4 and x[0] not in (3, 5, 7) for x, y in shapes)


def test_a_task_of_one_shape_keeps_it() -> None:
    task = Task.of_row(make_pair(shape_general=False))
    assert {trial.workload for batch in batches(task) for trial in batch.trials} == {0}


def test_every_change_gives_other_values() -> None:
    task = Task.of_row(make_pair())
    found = {}
    for batch in batches(task):
        tensors = batch.tensors()
        found |= {change: tensors[f"input.{index}.0"] for index, change in enumerate(batch.changes) if change}
    assert set(found) == set(CHANGES)
    assert len({tuple(value.reshape(-1).tolist()) for value in found.values()}) == len(CHANGES)
