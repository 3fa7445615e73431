"""The host side of the stage `lower`: send a module to a guest, check the untrusted reply, make the record."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from importlib.metadata import version
from keyword import iskeyword
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, Status
from kernelquarry.pipeline.sandbox.jobs.lower import LOWER, LowerRequest
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.parse_python import parse_expression
from kernelquarry.pipeline.schema.provenance import Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import (
    Backward,
    Binding,
    Construction,
    ConstructorSize,
    Lowered,
    Probed,
    Source,
    Workload,
)
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.tidy.syntax.ast_tools import names_in
from kernelquarry.transforms.workloads.guards import parse_guard, size_at

TARGET = "sm_90"  # default target of Inductor; verify compiles for other GPUs too

MOST_KERNELS = 10  # of a file: about 5,500 tokens, so that a row fits a context of 8,192; twelve exceed 7,000
MOST_WITH_GRADIENTS = 32  # a backward has two to three times the kernels of its forward

_EVIDENCE = 500  # characters
_GUEST = Limits(wall_s=60, cpu_s=60, output_mb=16)


@dataclass(frozen=True, slots=True)
class _Half:
    """One source and its arguments in a guest's reply."""

    inductor_code: str
    bindings: tuple[tuple[str, Source, str], ...]

    @property
    def bound(self) -> tuple[Binding, ...]:
        return tuple(Binding(*binding) for binding in self.bindings)


# Changed arguments by position, shapes of the state, and sizes of inputs by their names in guards.
_Construction = tuple[tuple[tuple[int, int], ...], tuple[tuple[str, tuple[int, ...]], ...], tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class _Found(_Half):
    """A guest's reply for a lowered module."""

    outputs: JsonValue
    shape_general: bool
    guards: tuple[str, ...]
    backward: _Half | None = None
    constructor_sizes: tuple[tuple[str, str], ...] = ()
    constructions: tuple[_Construction, ...] = ()


_REPLY: TypeAdapter[_Found] = TypeAdapter(_Found)


def lower(
    probed: Probed,
    sandbox: Sandbox,
    training: bool = False,
    dtype: str = "float32",
    target: str = TARGET,
    constructor_sizes: bool = False,
) -> Outcome[Lowered]:
    """Lower a module to Inductor's source for `target`: `sm_80`, `sm_90`, `sm_100` or `gfx942`.

    With `training`, a second source gives the gradients of its parameters and floating-point inputs. With a half
    `dtype` the module is cast to it; the workloads of `probed` have it already, see `transforms.variants`.

    With `constructor_sizes`, sizes that follow from the constructor's arguments are symbols where `tidy` supports them.
    """
    request = LowerRequest(
        code=probed.python_code,
        workloads=tuple(_plain(workload) for workload in probed.workloads),
        target=target,
        training=training,
        dtype=dtype,
        constructor_sizes=constructor_sizes,
        most_kernels=MOST_WITH_GRADIENTS if training else MOST_KERNELS,
    )
    outcome = _lowered(probed, request, sandbox)
    if isinstance(outcome, Kept) and outcome.record.constructor_sizes and isinstance(tidy(outcome.record), Dropped):
        return _lowered(probed, replace(request, constructor_sizes=False), sandbox)
    return outcome


def _lowered(probed: Probed, request: LowerRequest, sandbox: Sandbox) -> Outcome[Lowered]:
    report = sandbox.run(Job(LOWER, request, limits=_GUEST))
    if report.status is not Status.OK or report.reply is None:
        reason = Reason.UNSUPPORTED_OP if report.status is Status.RAISED else Reason(report.status.value)
        return Dropped(probed.id, reason, report.error[:_EVIDENCE])
    if "reason" in report.reply:
        reasons = {reason.name: reason for reason in Reason if reason.stage == "lower"}
        reason = reasons.get(str(report.reply["reason"]).upper(), Reason.CRASHED)  # another one is a misbehaving guest
        return Dropped(probed.id, reason, str(report.reply.get("evidence", ""))[:_EVIDENCE])
    try:
        found = _REPLY.validate_json(canonical(report.reply))
        for guard in found.guards:
            parse_guard(guard, of_module=True)
        _check_sizes(probed, found)
    except (ValidationError, ValueError, LookupError) as error:
        return Dropped(probed.id, Reason.CRASHED, f"garbled reply: {error}"[:_EVIDENCE])
    halves = [half for half in (found, found.backward) if half is not None]
    kernels = [half.inductor_code.count("async_compile.triton(") for half in halves]
    if not all(kernels):
        return Dropped(probed.id, Reason.NOTHING_TO_LOWER, "no Triton kernel")
    if sum(kernels) > request.most_kernels:
        return Dropped(probed.id, Reason.TOO_MANY_KERNELS, f"{sum(kernels)} kernels")
    if len(halves) != 1 + request.training:
        return Dropped(probed.id, Reason.CRASHED, f"garbled reply: {len(halves)} sources")
    options = canonical({"target": request.target, "triton": version("triton")})
    return Kept(
        Lowered(
            probed=probed,
            inductor_code=found.inductor_code,
            bindings=found.bound,
            outputs=canonical(found.outputs),
            shape_general=found.shape_general,
            generator=Generator("inductor", "torch.inductor", version("torch"), options),
            guards=found.guards,
            backward=tuple(Backward(half.inductor_code, half.bound) for half in halves[1:]),
            dtype=request.dtype,
            constructor_sizes=tuple(ConstructorSize(*size) for size in found.constructor_sizes),
            constructions=tuple(one for other in found.constructions if (one := _construction(probed, other))),
        )
    )


def _check_sizes(probed: Probed, found: _Found) -> None:
    """Raise ValueError or LookupError if a guest names a size that the module does not have."""
    shapes = {spec.name: spec.shape for spec in probed.state}
    texts = [*found.guards, *(size for size, _ in found.constructor_sizes)]
    for place in map(size_at, names_in(*(parse_guard(text, of_module=True) for text in texts))):
        if place is not None and place[0] == "state":
            shapes[found.bindings[place[1]][2]][place[2]]
    if wrong := [word for _, word in found.constructor_sizes if word and (not word.isidentifier() or iskeyword(word))]:
        raise ValueError(f"no name for a size: {wrong[0]!r}")


def _construction(probed: Probed, other: _Construction) -> Construction | None:
    """The calls for other arguments of the constructor; None if `init_args` has no plain numbers in their places."""
    arguments, shapes, inputs = dict(other[0]), dict(other[1]), {size_at(name): size for name, size in other[2]}
    tree = parse_expression(probed.init_args)
    for index, value in arguments.items():
        match tree:
            case ast.List(elts=items) if index < len(items) and isinstance(items[index], ast.Constant):
                items[index] = ast.Constant(value)
            case _:
                return None

    def changed(workload: Workload) -> Workload:
        tensors = [
            replace(spec, shape=tuple(inputs.get(("input", i, axis), n) for axis, n in enumerate(spec.shape)))
            for i, spec in enumerate(workload.tensors)
        ]
        return replace(workload, tensors=tuple(tensors))

    state = tuple(replace(spec, shape=shapes.get(spec.name, spec.shape)) for spec in probed.state)
    return Construction(ast.unparse(tree), tuple(map(changed, probed.workloads)), state)


def _plain(workload: Workload) -> dict[str, Any]:
    tensors = [{"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype} for spec in workload.tensors]
    return {"tensors": tensors, "args": workload.args, "kwargs": workload.kwargs}
