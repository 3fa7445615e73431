"""Targets that a candidate is compiled for. The guest is a double."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from test_execution import TASK, TRIALS, report

from kernelquarry.pipeline.sandbox import Job
from kernelquarry.pipeline.sandbox.jobs.compile import CompiledCall, CompileReply
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine
from kernelquarry.transforms.verify.compiling import check_kernel_failure, compile_kernels
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import Call, VerifySettings

LAUNCHES = [[("add", (1, 1, 1))]]  # of the one trial


class Compiler:
    """A sandbox with an A100. Its guest reports the same launches for all targets; the target `fails` has an error."""

    gpus = SimpleNamespace(description=SimpleNamespace(target="sm_80"))

    def __init__(self, fails: str = "") -> None:
        self.requested: list[list[str]] = []
        self._fails = fails

    def run(self, job: Job) -> Any:
        targets = [*job.request.targets]
        self.requested.append(targets)
        compiled, failed = CompiledCall(0, launches=(("add", (1,)),)), CompiledCall(0, error="no room")
        return report(CompileReply({each: (failed if each == self._fails else compiled,) for each in targets}))


def compiled(
    sandbox: Any, engine: Engine, settings: VerifySettings | None = None, by_model: bool = False
) -> tuple[str, ...]:
    task = replace(TASK, by_model=by_model)
    reference: Any = SimpleNamespace(
        task=task, trials=TRIALS, tensors={}, first_trials_of_calls=lambda: [0],
        sandbox=sandbox, settings=settings or VerifySettings(),
    )  # fmt: skip
    return compile_kernels(reference, engine)


@pytest.mark.parametrize(
    ("engine", "target", "requested"),
    [
        (Engine.TRACE, None, []),
        (Engine.TRACE, "gfx942", [["gfx942"]]),
        (Engine.GUEST, None, [["sm_80"]]),
        (Engine.INTERPRETER, None, [["sm_80"]]),
    ],
)
def test_the_target_of_a_trace_is_not_compiled_again(
    engine: Engine, target: str | None, requested: list[list[str]]
) -> None:
    sandbox = Compiler()
    assert compiled(sandbox, engine, VerifySettings(target)) == (target or "sm_80",)
    assert sandbox.requested == requested


def test_without_a_gpu_the_target_is_sm_90() -> None:
    sandbox: Any = SimpleNamespace(gpus=None)
    assert VerifySettings().target_on(sandbox) == "sm_90"


def test_a_failure_for_another_target_than_the_gpus_rejects_a_traced_candidate() -> None:
    with pytest.raises(Rejected) as rejected:
        compiled(Compiler(fails="gfx942"), Engine.TRACE, VerifySettings("gfx942"))
    assert rejected.value.reason == Reason.DOES_NOT_COMPILE


def test_no_guest_runs_without_a_target_to_compile_for() -> None:
    sandbox = Compiler()
    assert compiled(sandbox, Engine.INTERPRETER, VerifySettings("")) == ()
    assert sandbox.requested == []


def check_failure(broken: str, sandbox: Any, settings: VerifySettings | None = None) -> None:
    check_kernel_failure(Call(TASK, TRIALS[0]), broken, sandbox, settings or VerifySettings())


def test_a_kernel_that_compiles_may_not_raise_in_the_interpreter() -> None:
    with pytest.raises(Rejected) as rejected:
        check_failure("add: NotImplementedError: eight bits", Compiler())
    assert rejected.value.reason == Reason.DOES_NOT_RUN


@pytest.mark.parametrize(
    ("broken", "fails", "target"),
    [
        ("", "", None),
        ("add: ValueError: no power of two", "sm_80", None),
        ("add: AssertionError: base must be 16-byte aligned", "", None),
        ("add: NotImplementedError: eight bits", "", ""),
    ],
)
def test_a_kernel_may_raise_where_a_compiler_or_gpu_would(broken: str, fails: str, target: str | None) -> None:
    check_failure(broken, Compiler(fails), VerifySettings(target))
