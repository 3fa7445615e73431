"""Read a problem in KernelBench's form: a source with `Model`, `get_inputs()` and `get_init_inputs()`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, Status
from kernelquarry.pipeline.sandbox.jobs.describe_problem import (
    DESCRIBE_PROBLEM,
    ProblemCall,
    ProblemReply,
    ProblemRequest,
    SizeLimits,
)
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import printable
from kernelquarry.pipeline.schema.provenance import Generator, Licence, SourceRef
from kernelquarry.pipeline.schema.records import ENTRY_POINT, CallShape, Purity, Row, StateSpec, TensorSpec, Workload

_MESSAGE = 500  # characters
_ENDS = {
    Status.TIMED_OUT: "the module takes longer than {limits.cpu_s} s",
    Status.OUT_OF_MEMORY: "the module needs more than {limits.memory_mb} MB of memory",
    Status.CRASHED: "the module crashes its process: {error}",
    Status.RAISED: "the module raises: {error}",
}


class UnfitProblem(Exception):
    """A problem that no kernel can be checked against, and why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A module, and the calls on which kernels are checked against it."""

    code: str  # with smaller sizes than the source that was read, if those were too large
    init_args: str  # Python source of a list
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    operators: tuple[str, ...]  # of PyTorch that forward calls; () if it was not called
    given: Workload | None  # the call at the sizes of the source that was read; None if unknown
    given_init_args: str
    given_shapes: tuple[CallShape, ...]  # that the calls in it give; () if unknown
    structure: str  # of the inputs' values, which draws lack; "" if none was found
    values: Tensors = field(compare=False)  # the inputs of the first workload; {} if they are ordinary, or complex
    strided: bool  # one of them is not contiguous


def read_problem(
    code: str,
    sandbox: Sandbox,
    guest: Limits,
    sizes: SizeLimits | None = None,
    resize: bool = True,
    more_calls: int = 0,
    above: tuple[int, ...] = (),
    unit: int = 1,
) -> Problem:
    """Run the source in a guest; for the arguments see `ProblemRequest`. Raises: UnfitProblem."""
    request = ProblemRequest(code, sizes, resize, more_calls, above, unit)
    report = sandbox.run(Job(DESCRIBE_PROBLEM, request, {}, guest))
    reply = report.reply
    if reply is None:
        raise UnfitProblem(_ENDS[report.status].format(limits=guest, error=_line(report.error)))
    if reply.failure:
        raise UnfitProblem(_line(reply.failure))
    return _problem(reply, report.tensors)


def _problem(reply: ProblemReply, values: Tensors) -> Problem:
    return Problem(
        code=reply.code,
        init_args=reply.init_args,
        workloads=tuple(map(_workload, reply.calls)),
        state=tuple(
            StateSpec(entry.name, entry.kind, entry.shape, entry.dtype, entry.mean, entry.std, entry.minimum)
            for entry in reply.state
        ),
        operators=reply.operators,
        given=_workload(reply.given) if reply.given else None,
        given_init_args=reply.given_init_args,
        given_shapes=tuple(CallShape(each.call, each.shape, each.dtype, each.further) for each in reply.given_shapes),
        structure=reply.structure,
        values=values,
        strided=reply.strided,
    )


def _workload(call: ProblemCall) -> Workload:
    tensors = [
        TensorSpec(name if name.isidentifier() else f"x{place}", spec.shape, spec.dtype, spec.low, spec.high)
        for place, (name, spec) in enumerate(zip(call.names, call.tensors, strict=True))
    ]
    return Workload(tuple(tensors), json.dumps(call.args))


def _line(text: str) -> str:
    """The text on one line, safe to print."""
    return printable(" ".join(text.split()))[:_MESSAGE]


def row_of(
    name: str,
    code: str,
    init_args: str,
    workloads: tuple[Workload, ...],
    state: tuple[StateSpec, ...],
    shapes: tuple[CallShape, ...] = (),
) -> Row:
    """A row of a problem's module, without a kernel."""
    return Row(
        id=name,
        module_name=name,
        entry_point=ENTRY_POINT,
        python_code=code,
        triton_code="",
        inductor_code="",
        generator=Generator("model", "", "", "{}"),
        source=SourceRef("benchmark", name, "", "", sha256(code.encode(errors="surrogatepass"))),
        licence=Licence("NOASSERTION", ""),
        imported_files=(),
        slice_of=(),
        shapes=shapes,
        init_args=init_args,
        workloads=workloads,
        state=state,
        operators=(),
        kernels=(),
        purity=Purity.PURE,
        extern_ops=(),
        shape_general=len(workloads) > 1,
        guards=(),
        distillation=(),
    )
