"""Rows made from the source of a benchmark's problem, for the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.pipeline.check.checker import INTERPRETED, MORE_CALLS
from kernelquarry.pipeline.check.problem import Problem, UnfitProblem, read_problem, row_of
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.axis_sizes import varied
from kernelquarry.pipeline.sandbox.jobs.describe_problem import SizeLimits
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Row, Workload

_LIMITS = Limits(wall_s=120.0, cpu_s=120, memory_mb=32 << 10)


def row_of_source(name: str, code: str, sandbox: Sandbox) -> Row:
    """A row with the inputs and state of `code`, which defines `Model`, `get_inputs()` and `get_init_inputs()`.

    The code runs in a guest.

    Raises:
        UserError: the code does not run.
    """
    problem = _read(name, code, sandbox)
    return row_of(name, code, problem.init_args, problem.workloads, problem.state)


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
    return row_of(name, code, problem.given_init_args, workloads, problem.state, problem.given_shapes)


def _varied(given: Workload, calls: Sequence[Workload]) -> list[Workload]:
    """`given` with each size that differs between the calls as each of them has it."""
    return [
        replace(given, tensors=tuple(replace(spec, shape=n) for spec, n in zip(given.tensors, shapes, strict=True)))
        for shapes in varied(_shapes(given), list(map(_shapes, calls)))
    ]


def _shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [spec.shape for spec in workload.tensors]


def _read(name: str, code: str, sandbox: Sandbox, sizes: SizeLimits | None = None, more_calls: int = 0) -> Problem:
    try:
        return read_problem(code, sandbox, _LIMITS, sizes, more_calls=more_calls)
    except UnfitProblem as unfit:
        raise UserError(f"{name}: the problem does not run: {unfit}") from None
