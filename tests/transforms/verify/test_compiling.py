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
ALL = VerifySettings().targets


class Compiler:
    """A sandbox with an H100. Its guest reports the same launches for all targets; the target `fails` has an error."""

    gpus = SimpleNamespace(description=SimpleNamespace(target="sm_90"))

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
    reference: Any = SimpleNamespace(task=task, trials=TRIALS, tensors={}, first_trials_of_calls=lambda: [0])
    conclusion: Any = SimpleNamespace(launches=LAUNCHES, launch_logs=())
    return compile_kernels(reference, conclusion, engine, sandbox, settings or VerifySettings())


@pytest.mark.parametrize(
    ("engine", "targets"),
    [(Engine.TRACE, ["sm_80", "sm_100", "gfx942"]), (Engine.GUEST, [*ALL]), (Engine.INTERPRETER, [*ALL])],
)
def test_the_target_of_a_trace_is_not_compiled_again(engine: Engine, targets: list[str]) -> None:
    sandbox = Compiler()
    assert compiled(sandbox, engine) == ALL
    assert sandbox.requested == [targets]


def test_a_models_candidate_is_compiled_for_all_targets() -> None:
    sandbox = Compiler()
    assert compiled(sandbox, Engine.TRACE, by_model=True) == ALL
    assert sandbox.requested == [[*ALL]]


def test_a_failure_for_another_target_rejects_a_traced_candidate() -> None:
    with pytest.raises(Rejected) as rejected:
        compiled(Compiler(fails="gfx942"), Engine.TRACE)
    assert rejected.value.reason == Reason.DOES_NOT_COMPILE


@pytest.mark.parametrize("targets", [(), ("sm_90",)])
def test_no_guest_runs_without_a_target_to_compile_for(targets: tuple[str, ...]) -> None:
    sandbox = Compiler()
    assert compiled(sandbox, Engine.TRACE, VerifySettings(targets=targets)) == targets
    assert sandbox.requested == []


def check_failure(broken: str, sandbox: Any, settings: VerifySettings | None = None) -> None:
    check_kernel_failure(Call(TASK, TRIALS[0]), broken, sandbox, settings or VerifySettings())


def test_a_kernel_that_compiles_may_not_raise_in_the_interpreter() -> None:
    with pytest.raises(Rejected) as rejected:
        check_failure("add: NotImplementedError: eight bits", Compiler())
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
def test_a_kernel_may_raise_where_a_compiler_or_gpu_would(broken: str, fails: str, targets: tuple[str, ...]) -> None:
    check_failure(broken, Compiler(fails), VerifySettings(targets=targets))
