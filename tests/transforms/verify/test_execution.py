"""Replies of the executor in the form of the interpreter's guest. The GPU is a double."""

from __future__ import annotations

import copy
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from gpu_double import Double, floats
from traced_programs import SIZE, doubled_sum, kernel, view

from kernelquarry.pipeline.sandbox import Job, Report, Status
from kernelquarry.pipeline.sandbox.cuda import Fault
from kernelquarry.pipeline.sandbox.executor.process import execute as execute_in_process
from kernelquarry.pipeline.sandbox.executor.service import Execution, ExecutionStatus, GpuDescription
from kernelquarry.pipeline.sandbox.jobs.calls import StateEntry
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply
from kernelquarry.pipeline.sandbox.jobs.trace import TraceReply
from kernelquarry.pipeline.sandbox.observation import read_observation
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.execution import Untraceable, execute
from kernelquarry.transforms.verify.reference_run import Reference
from kernelquarry.transforms.verify.task import PlannedTrial, Task, VerifySettings, draw

WORKLOAD = Workload((TensorSpec("x", (SIZE,), "float32"),), '[{"tensor":0}]')
TASK = Task(
    id="mod_x", python_code="", triton_code="", init_args="[]", workloads=(WORKLOAD, WORKLOAD),
    state=(StateSpec("weight", "parameter", (SIZE,), "float32", 0.0, 1.0, -1.0),),
    kernels=("add", "scale"), purity=Purity.PURE, extern_ops=(), shape_general=True,
)  # fmt: skip
ENTRY = StateEntry((SIZE,), "float32", "…")
STATE = {"weight": ENTRY}
TRIALS = (PlannedTrial(0, 0, "normal"), PlannedTrial(0, 1, "scaled"), PlannedTrial(1, 2, "normal"))


class TracedSandbox:
    """A sandbox whose guest returns `report` as its trace, and whose GPU is simulated in this process."""

    description = GpuDescription("a double", "sm_90", "1")

    def __init__(self, report: Report, fault: str = "") -> None:
        self._report, self._fault = report, fault

    @property
    def gpus(self) -> TracedSandbox:
        return self

    def run(self, request: Any, tensors: Any = None, wall_s: float = 0) -> Any:
        if isinstance(request, Job):
            assert (request.kind.name, request.request.target, request.tensors) == ("trace", "sm_90", {})
            self.traced = request.request
            return self._report
        return self._execute(request, tensors)

    def _execute(self, request: Any, tensors: Any) -> Execution:
        def add(grid: Any, x: int, weight: int, out: int, count: int) -> None:
            floats(out, count)[:] = floats(x, count) + floats(weight, count)

        def scale(grid: Any, x: int, out: int, count: int, factor: float) -> None:
            if self._fault:
                raise Fault(self._fault)
            floats(out, count)[:] = floats(x, count) * factor

        try:
            reply, results = execute_in_process(Double({"add": add, "scale": scale}), request, tensors)
        except Fault as fault:
            return Execution(ExecutionStatus.FAULT, {}, {}, str(fault), 0.0)
        return Execution(ExecutionStatus.DONE, reply, results, "", 0.0)


def report(reply: Any, **changes: Any) -> Report:
    binaries = {f"binary.hash of {name}": torch.zeros(1, dtype=torch.uint8) for name in ("add", "scale")}
    fields = {"status": Status.OK, "error": "", "traceback": "", "stderr": "", "wall_s": 0.0, "cpu_s": 0.0}
    return Report(**{"reply": reply, "tensors": binaries, "peak_mb": 0.0, **fields, **changes})


def traced(program: dict[str, Any] | None = None, **fields: Any) -> Report:
    programs = [program or doubled_sum(), doubled_sum()]
    names = {"kernels": [kernel("add"), kernel("scale")], "state": STATE}
    return report(TraceReply(**{"programs": programs, **names, **fields}))


def executed(
    guest: Report, fault: str = "", undrawn: Any = None, trials: tuple[PlannedTrial, ...] = TRIALS
) -> tuple[TrialsReply, dict[str, torch.Tensor]]:
    reference: Any = SimpleNamespace(
        task=TASK, trials=trials, tensors=draw(TASK, trials), undrawn=undrawn or {},
        sandbox=TracedSandbox(guest, fault), settings=VerifySettings(),
    )  # fmt: skip
    reference.check_state = partial(Reference.check_state, SimpleNamespace(_state=STATE))
    return execute(reference)


def executed_program(program: dict[str, Any] | None = None) -> tuple[TrialsReply, dict[str, torch.Tensor]]:
    return executed(traced(program))


def test_every_trial_is_described() -> None:
    reply, results = executed_program()
    drawn = draw(TASK, TRIALS)
    for index, trial in enumerate(TRIALS):
        observed = read_observation(reply.trials[index], results, str(index))
        expected = 2 * (drawn[f"input.{index}.0"] + drawn[f"state.{trial.state}.weight"])
        torch.testing.assert_close(observed.outputs[0], expected)
        assert (observed.strides, observed.shares, observed.mutated, observed.changed) == (((1,),), ("",), {}, {})
    assert reply.launches == ((("add", (1, 1, 1)), ("scale", (1, 1, 1))),) * 3
    assert (reply.state, reply.operators, reply.failed) == (STATE, (), ())


def test_strided_trials_have_a_program_of_their_own() -> None:
    copied = copy.deepcopy(doubled_sum())
    copied["outputs"] = [view(1, [SIZE])]
    trials = (*TRIALS, PlannedTrial(0, 3, "shifted_strided"))
    reply, _ = executed(traced(programs=[doubled_sum(), doubled_sum(), copied]), trials=trials)
    assert [call.shares for call in reply.trials] == [("",), ("",), ("",), ("input 0",)]


def test_the_repetition_and_the_ghost_run_the_first_trial() -> None:
    reply, results = executed_program()
    repeat = read_observation(reply.repeat, results, "repeat")
    assert torch.equal(repeat.outputs[0], results["0.output.0"])
    assert read_observation(reply.ghost, results, "ghost").outputs[0].isnan().all()


def test_outputs_that_share_memory_and_inputs_that_change() -> None:
    program = copy.deepcopy(doubled_sum())
    program["steps"][1]["arguments"][1] = ["*", 1, 0]  # scale writes into the input
    program["outputs"] = [view(1, [SIZE]), view(0, [2]), view(2, [3]), view(2, [2], offset=2), view(2, [0])]
    program["outputs"] += [view(2, [1], offset=4)]
    reply, results = executed_program(program)
    observed = read_observation(reply.trials[0], results, "0")
    assert observed.shares == ("input 0", "state weight", "", "output 2", "", "")
    assert list(observed.mutated) == [0] and torch.equal(observed.mutated[0], observed.outputs[0])


def test_a_change_of_the_state_is_reported() -> None:
    program = copy.deepcopy(doubled_sum())
    program["steps"][1]["arguments"][1] = ["*", 0, 0]  # scale writes into the weight
    reply, results = executed_program(program)
    observed = read_observation(reply.trials[0], results, "0")
    drawn = draw(TASK, TRIALS)
    torch.testing.assert_close(observed.changed, {"weight": 2 * (drawn["input.0.0"] + drawn["state.0.weight"])})


def test_later_calls_do_not_change_the_first_output() -> None:
    _, results = executed_program()
    assert torch.equal(results["later.output.0"], results["0.output.0"])


def test_state_that_is_not_drawn_has_the_reference_s_values() -> None:
    program = copy.deepcopy(doubled_sum())
    program["named"]["state.table"] = program["named"].pop("state.weight")
    program["storages"][0]["origin"] = "state.table"
    table = torch.arange(float(SIZE))
    _, results = executed(traced(programs=[program, program]), undrawn={"table": table})
    torch.testing.assert_close(results["0.output.0"], 2 * (draw(TASK, TRIALS)["input.0.0"] + table))


def test_a_fault_rejects() -> None:
    with pytest.raises(Rejected, match="misaligned") as raised:
        executed(traced(), "misaligned address")
    assert raised.value.reason == Reason.DOES_NOT_RUN


def test_a_candidate_without_a_trace_raises() -> None:
    with pytest.raises(Untraceable, match="reads a value"):
        executed(report(TraceReply(untraceable="reads a value")))


@pytest.mark.parametrize(
    ("guest", "reason"),
    [
        (report(None, status=Status.TIMED_OUT, error="no reply"), Reason.TIMED_OUT),
        (report(None, status=Status.RAISED, error="ValueError"), Reason.DOES_NOT_RUN),
        (traced(programs=[doubled_sum()]), Reason.CRASHED),
        (traced(programs=[doubled_sum(), {}]), Reason.CRASHED),
        (traced(programs=()), Reason.CRASHED),
        (traced(kernels=[{}]), Reason.CRASHED),
    ],
)
def test_without_programs_nothing_is_executed(guest: Report, reason: Reason) -> None:
    with pytest.raises(Rejected) as raised:
        executed(guest)
    assert raised.value.reason == reason


def test_an_additional_entry_of_the_state_rejects() -> None:
    program = copy.deepcopy(doubled_sum())
    program["named"]["state.extra"] = program["named"]["state.weight"]
    with pytest.raises(Rejected, match="1 entries differ: extra") as raised:
        executed(traced(program, state={"weight": ENTRY, "extra": ENTRY}))
    assert raised.value.reason == Reason.STATE_DIFFERS


def test_a_load_error_is_passed_on() -> None:
    assert executed(report(TraceReply(load_error="SyntaxError"))) == (TrialsReply(load_error="SyntaxError"), {})
