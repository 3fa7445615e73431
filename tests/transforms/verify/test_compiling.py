"""What is compiled for which targets. The guest is a double."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from test_execution import TASK, TRIALS, report

from kernelquarry.pipeline.sandbox import Job
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine
from kernelquarry.transforms.verify.compiling import check_refusal, compile_kernels
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import Call, VerifySettings

LAUNCHES = [[("add", (1, 1, 1))]]  # of the one trial
ALL = VerifySettings().targets


class Compiler:
    """A sandbox with an H100, whose guest launches the same for each target, and fails for one."""

    gpus = SimpleNamespace(description=SimpleNamespace(target="sm_90"))

    def __init__(self, fails: str = "") -> None:
        self.asked: list[list[str]] = []
        self._fails = fails

    def run(self, job: Job) -> Any:
        targets: Any = job.request["targets"]
        self.asked.append(targets)
        found: Any = {target: {"launches": [["add", [1]]], "failed": []} for target in targets}
        return report({**found, **{target: {"error": "no room"} for target in targets if target == self._fails}})


def compiled(
    sandbox: Any, engine: Engine, settings: VerifySettings | None = None, by_model: bool = False
) -> tuple[str, ...]:
    task = replace(TASK, by_model=by_model)
    reference: Any = SimpleNamespace(task=task, trials=TRIALS, tensors={}, of_other_calls=lambda: [])
    shown: Any = SimpleNamespace(launches=LAUNCHES, told=[])
    return compile_kernels(reference, shown, engine, sandbox, settings or VerifySettings())


@pytest.mark.parametrize(
    ("engine", "asked"),
    [(Engine.TRACE, ["sm_80", "sm_100", "gfx942"]), (Engine.GUEST, [*ALL]), (Engine.INTERPRETER, [*ALL])],
)
def test_what_a_trace_was_compiled_for_is_not_compiled_again(engine: Engine, asked: list[str]) -> None:
    sandbox = Compiler()
    assert compiled(sandbox, engine) == ALL
    assert sandbox.asked == [asked]


def test_a_models_candidate_is_compiled_for_all() -> None:
    sandbox = Compiler()
    assert compiled(sandbox, Engine.TRACE, by_model=True) == ALL
    assert sandbox.asked == [[*ALL]]


def test_the_other_targets_are_still_asked_for() -> None:
    with pytest.raises(Rejected) as rejected:
        compiled(Compiler(fails="gfx942"), Engine.TRACE)
    assert rejected.value.reason == Reason.DOES_NOT_COMPILE


@pytest.mark.parametrize("targets", [(), ("sm_90",)])
def test_where_no_target_is_left_no_guest_is_asked(targets: tuple[str, ...]) -> None:
    sandbox = Compiler()
    assert compiled(sandbox, Engine.TRACE, VerifySettings(targets=targets)) == targets
    assert sandbox.asked == []


def refused(broken: str, sandbox: Any, settings: VerifySettings | None = None) -> None:
    check_refusal(Call(TASK, TRIALS[0]), broken, sandbox, settings or VerifySettings())


def test_a_kernel_that_raises_where_it_is_interpreted_and_compiles_refuses_nothing() -> None:
    with pytest.raises(Rejected) as rejected:
        refused("add: NotImplementedError: eight bits", Compiler())
    assert rejected.value.reason == Reason.DOES_NOT_RUN


@pytest.mark.parametrize(
    ("broken", "fails", "targets"),
    [
        ("", "", ALL),
        ("add: ValueError: no power of two", "sm_80", ALL),
        ("add: AssertionError: base must be 16-byte aligned", "", ALL),
        ("add: NotImplementedError: eight bits", "", ()),
    ],
)
def test_what_a_compiler_or_a_gpu_refuses_may_be_refused(broken: str, fails: str, targets: tuple[str, ...]) -> None:
    refused(broken, Compiler(fails), VerifySettings(targets=targets))
