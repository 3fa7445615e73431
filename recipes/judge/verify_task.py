"""Rows made from the source of a benchmark's problem, for the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.pipeline.check.checker import INTERPRETED, MORE_CALLS
from kernelquarry.pipeline.check.problem import Problem, UnfitProblem, read_problem
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.axes import varied
from kernelquarry.pipeline.sandbox.jobs.describe_problem import SizeLimits
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import Generator, Licence, SourceRef
from kernelquarry.pipeline.schema.records import ENTRY_POINT, CallShape, Purity, Row, StateSpec, TensorSpec, Workload

_LIMITS = Limits(wall_s=120.0, cpu_s=120, memory_mb=32 << 10)


def row_of_source(name: str, code: str, sandbox: Sandbox) -> Row:
    """A row with the inputs and state of `code`, which defines `Model`, `get_inputs()` and `get_init_inputs()`.

    The code runs in a guest.

    Raises:
        UserError: the code does not run.
    """
    problem = _read(name, code, sandbox)
    return _row(name, code, problem.init_args, problem.workloads, problem.state, ())


def row_of_shapes(name: str, code: str, sandbox: Sandbox) -> Row:
    """A row for a prompt: with the shapes of the inputs as given, which may be too large to run.

    Its further workloads only tell which sizes vary.

    Raises:
        UserError: the code does not run at smaller sizes either.
    """
    problem = _read(name, code, sandbox, INTERPRETED[0], MORE_CALLS)
    if problem.given is None:  # it needs values
        return row_of_source(name, code, sandbox)
    workloads = (problem.given, *_varied(problem.given, problem.workloads))
    return _row(name, code, problem.given_init_args, workloads, problem.state, problem.given_shapes)


def _varied(given: Workload, calls: Sequence[Workload]) -> list[Workload]:
    """`given` with each size that differs between the calls as each of them has it."""
    return [
        replace(given, tensors=tuple(map(_with_shape, given.tensors, shapes)))
        for shapes in varied(_shapes(given), list(map(_shapes, calls)))
    ]


def _shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [spec.shape for spec in workload.tensors]


def _with_shape(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    return replace(spec, shape=shape)


def _read(name: str, code: str, sandbox: Sandbox, sizes: SizeLimits | None = None, more_calls: int = 0) -> Problem:
    try:
        return read_problem(code, sandbox, _LIMITS, sizes, more_calls=more_calls)
    except UnfitProblem as unfit:
        raise UserError(f"{name}: the problem does not run: {unfit}") from None


def _row(
    name: str,
    code: str,
    init_args: str,
    workloads: tuple[Workload, ...],
    state: tuple[StateSpec, ...],
    shapes: tuple[CallShape, ...],
) -> Row:
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
