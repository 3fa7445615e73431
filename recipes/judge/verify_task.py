"""Rows made from the source of a benchmark's problem, for the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.pipeline.check.checker import INTERPRETED, MORE_CALLS
from kernelquarry.pipeline.check.problem import Problem, UnfitProblem, read_problem
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.describe_problem import SizeLimits
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.provenance import Generator, Licence, SourceRef
from kernelquarry.pipeline.schema.records import ENTRY_POINT, CallShape, Purity, Row, StateSpec, Workload
from kernelquarry.transforms.workloads.resize import axis_sizes

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
    varying = {axis: size for axis, size in axis_sizes(calls).items() if len(set(size)) > 1}
    if not varying:
        return []
    varied = []
    for place in range(len(calls)):
        shapes = [
            tuple(varying[index, axis][place] if (index, axis) in varying else n for axis, n in enumerate(spec.shape))
            for index, spec in enumerate(given.tensors)
        ]
        tensors = [replace(spec, shape=shape) for spec, shape in zip(given.tensors, shapes, strict=True)]
        varied.append(replace(given, tensors=tuple(tensors)))
    return varied


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
