"""Plans agree with the guest's Python on honest candidates, and a guest that says otherwise is found out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from corpus import load_case

from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET, TrialsReply, TrialsRequest
from kernelquarry.transforms.verify.plan import Planner
from kernelquarry.transforms.verify.plan.agreement import disagreement
from kernelquarry.transforms.verify.task import PlannedTrial, Task, draw, plan, trial_calls

Trials = tuple[PlannedTrial, ...]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as opened:
        yield opened


def interpret(name: str, sandbox: Sandbox) -> tuple[Task, Trials, TrialsReply]:
    task = Task.of_candidate(load_case("honest", name).candidate)
    trials = plan(task)[:3]
    request = TrialsRequest(task.candidate_source, trial_calls(task, trials))
    report = sandbox.run(Job(INTERPRET, request, draw(task, trials), Limits(processes=1)))
    assert report.reply is not None and report.reply.trials, report.error
    return task, trials, report.reply


def compared(task: Task, trials: Trials, reply: TrialsReply) -> str:
    return disagreement(Planner(Source(task.triton_code), reply.snapshot), task, trials, reply)


@pytest.mark.parametrize(
    "name",
    [
        "softmax",
        "gelu_tanh_autograd_function",
        "swiglu_autotuned_with_pruning_and_keys",
        "linear_tiles_set_by_autotune_hook",
        "strides_in_a_named_tuple",
        "softmax_configured_by_a_dataclass",
        "layers_in_a_loop",
        "relu_after_torch_norms",
        "tied_embedding_scores",
    ],
)
def test_plans_agree_with_python(name: str, sandbox: Sandbox) -> None:
    assert compared(*interpret(name, sandbox)) == ""


def test_another_launch_is_found(sandbox: Sandbox) -> None:
    task, trials, reply = interpret("linear", sandbox)
    first = tuple(launch.replace("[", "[1", 1) for launch in reply.launch_logs[0])
    changed = replace(reply, launch_logs=(first, *reply.launch_logs[1:]))
    assert "the plan launches" in compared(task, trials, changed)
    missing = replace(reply, launch_logs=((), *reply.launch_logs[1:]))
    assert "1 launches, Python 0" in compared(task, trials, missing)


def test_another_output_or_operator_is_found(sandbox: Sandbox) -> None:
    task, trials, reply = interpret("mixed_linear", sandbox)
    call = replace(reply.trials[0], shares=("input 0",))
    assert "shares" in compared(task, trials, replace(reply, trials=(call, *reply.trials[1:])))
    assert "aten.mm" in compared(task, trials, replace(reply, operators=()))


def test_a_gpu_may_run_an_operator_under_another_name(sandbox: Sandbox) -> None:
    task, trials, reply = interpret("relu_after_torch_norms", sandbox)
    assert "aten.native_batch_norm" in reply.operators
    on_gpu = tuple(name.replace("native", "cudnn") for name in reply.operators)
    assert compared(task, trials, replace(reply, operators=on_gpu)) == ""
    assert "cudnn_rnn" in compared(task, trials, replace(reply, operators=(*on_gpu, "aten._cudnn_rnn")))
