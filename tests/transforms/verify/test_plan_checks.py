"""A model's candidate must do what its source plans, and its text is published as it was tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from corpus import load_case

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.verify import plan_checks
from kernelquarry.transforms.verify.checks import Proven
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.further_checks import FurtherRuns
from kernelquarry.transforms.verify.plan.claims import Unfaithful
from kernelquarry.transforms.verify.plan_checks import check_plan
from kernelquarry.transforms.verify.reference_run import Reference
from kernelquarry.transforms.verify.running import run_candidate
from kernelquarry.transforms.verify.task import Task, VerifySettings, draw, plan
from kernelquarry.transforms.verify.verify_candidate import verify_task

SETTINGS = VerifySettings(target="", find_counterexamples=False)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as opened:
        yield opened


def task_of(name: str) -> Task:
    return Task.of_candidate(load_case("honest", name).candidate)


def test_a_narrowed_text_is_verified_again(sandbox: Sandbox) -> None:
    task = task_of("layer_norm_launch_settings_helper")
    proven = verify_task(task, sandbox, SETTINGS)
    assert isinstance(proven, Proven)
    assert "line 16: verified only unless block >= 32768" in proven.narrowed
    assert proven.code != task.triton_code and "raise NotImplementedError" in proven.code
    again = verify_task(replace(task, triton_code=proven.code), sandbox, SETTINGS)
    assert isinstance(again, Proven) and again.code == proven.code and not again.narrowed


def test_a_function_that_the_constructor_needs_whole_stays(sandbox: Sandbox) -> None:
    task = task_of("layer_norm_launch_settings_helper")
    code = task.triton_code.replace("super().__init__()", "super().__init__()\n        calculate_settings(1 << 15)", 1)
    assert code != task.triton_code
    proven = verify_task(replace(task, triton_code=code), sandbox, SETTINGS)
    assert isinstance(proven, Proven) and proven.code == code
    assert any(note.endswith("since the constructor needs more") for note in proven.narrowed)


def test_a_way_that_only_further_calls_went_must_raise(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of("softmax")
    lines = task.triton_code.splitlines()
    (at,) = (index for index, line in enumerate(lines) if line.strip().startswith("softmax["))
    again = f"        if x.shape[1] > 1500:\n    {lines[at]}"
    task = replace(task, triton_code="\n".join([*lines[: at + 1], again, *lines[at + 1 :], ""]))
    proven = verify_task(task, sandbox, SETTINGS)
    assert isinstance(proven, Proven) and proven.narrowed[0].endswith("verified only unless x.shape[1] > 1500")

    def refuse(*_: object) -> None:
        raise Unfaithful("for a test")

    monkeypatch.setattr(plan_checks, "claim", refuse)
    outcome = verify_task(task, sandbox, SETTINGS)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.UNVERIFIED_PATH
    assert "goes another way" in outcome.evidence


def test_a_text_without_conditions_stays(sandbox: Sandbox) -> None:
    task = task_of("softmax")
    proven = verify_task(task, sandbox, SETTINGS)
    assert isinstance(proven, Proven) and proven.code == task.triton_code and not proven.narrowed


def test_a_guest_that_says_something_else_is_rejected(sandbox: Sandbox) -> None:
    task = task_of("softmax")
    trials = plan(task)[:2]
    reference = Reference(task, trials, draw(task, trials), sandbox, SETTINGS)
    reply = run_candidate(reference).reply
    further = FurtherRuns.of(reference)
    check_plan(reference, reply, further)
    logs = (tuple(launch.replace("float32", "float16") for launch in reply.launch_logs[0]), *reply.launch_logs[1:])
    with pytest.raises(Rejected) as raised:
        check_plan(reference, replace(reply, launch_logs=logs), further)
    assert raised.value.reason is Reason.PLAN_DIFFERS and "the plan launches" in raised.value.evidence
    with pytest.raises(Rejected) as raised:
        check_plan(reference, replace(reply, snapshot=None), further)
    assert raised.value.reason is Reason.PLAN_DIFFERS
