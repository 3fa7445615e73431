"""Rows made from the source of a benchmark's problem, for the verifier."""

from __future__ import annotations

from kernelquarry.pipeline.check.problem import UnfitProblem, read_problem
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import Generator, Licence, SourceRef
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Purity, Row

_LIMITS = Limits(wall_s=120.0, cpu_s=120, memory_mb=32 << 10)


def row_of_source(name: str, code: str, sandbox: Sandbox) -> Row:
    """A row with the inputs and state of `code`, which defines `Model`, `get_inputs()` and `get_init_inputs()`.

    The code runs in a guest.

    Raises:
        UserError: the code does not run.
    """
    try:
        problem = read_problem(code, sandbox, _LIMITS)
    except UnfitProblem as unfit:
        raise UserError(f"{name}: the problem does not run: {unfit}") from None
    return Row(
        id=name,
        module_name=name,
        entry_point=ENTRY_POINT,
        python_code=code,
        triton_code="",
        inductor_code="",
        generator=Generator("model", "", "", "{}"),
        source=SourceRef("benchmark", name, "", "", sha256(code.encode())),
        licence=Licence("NOASSERTION", ""),
        imported_files=(),
        slice_of=(),
        init_args=problem.init_args,
        workloads=problem.workloads,
        state=problem.state,
        operators=(),
        kernels=(),
        purity=Purity.PURE,
        extern_ops=(),
        shape_general=False,
        guards=(),
        distillation=(),
    )
