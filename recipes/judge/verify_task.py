"""Rows made from the source of a benchmark's problem, for the verifier."""

from __future__ import annotations

import json
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.describe_problem import DESCRIBE_PROBLEM, ProblemReply, ProblemRequest
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import Generator, Licence, SourceRef
from kernelquarry.pipeline.schema.records import Purity, Row, StateSpec, TensorSpec, Workload

_LIMITS = Limits(wall_s=120.0, cpu_s=120, memory_mb=32 << 10)


def row_of_source(name: str, code: str, sandbox: Sandbox) -> Row:
    """A row with the inputs and state of `code`, which defines `Model`, `get_inputs()` and `get_init_inputs()`.

    The code runs in a guest.

    Raises:
        UserError: the code does not run.
    """
    report = sandbox.run(Job(DESCRIBE_PROBLEM, ProblemRequest(code), {}, _LIMITS))
    if report.reply is None:
        raise UserError(f"{name}: the problem does not run: {report.error}")
    return _row(name, code, report.reply)


def _row(name: str, code: str, reply: ProblemReply) -> Row:
    tensors: list[TensorSpec] = []
    args: list[Any] = []
    for place, value in enumerate(reply.inputs):
        if value.tensor is None:
            args.append(value.value)
            continue
        args.append({"tensor": len(tensors)})
        spec = value.tensor
        tensors.append(TensorSpec(f"x{place}", spec.shape, spec.dtype, spec.low, spec.high))
    state = tuple(
        StateSpec(entry.name, entry.kind, entry.shape, entry.dtype, entry.mean, entry.std, entry.minimum)
        for entry in reply.state
    )
    return Row(
        id=name,
        module_name=name,
        entry_point="Model",
        python_code=code,
        triton_code="",
        inductor_code="",
        generator=Generator("model", "", "", "{}"),
        source=SourceRef("benchmark", name, "", "", sha256(code.encode())),
        licence=Licence("NOASSERTION", ""),
        imported_files=(),
        init_args=reply.init_args,
        workloads=(Workload(tuple(tensors), json.dumps(args)),),
        state=state,
        operators=(),
        kernels=(),
        purity=Purity.PURE,
        extern_ops=(),
        shape_general=False,
        guards=(),
        distillation=(),
    )
