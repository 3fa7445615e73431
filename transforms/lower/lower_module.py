"""The host side of the stage `lower`: send a module to a guest, check the untrusted reply, make the record."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, Status
from kernelquarry.pipeline.sandbox.jobs.lower import LOWER, LowerRequest
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Backward, Binding, Lowered, Probed, Source, Workload
from kernelquarry.transforms.workloads.guards import parse_guard

TARGET = "sm_90"  # default target of Inductor; verify compiles for other GPUs too

MOST_KERNELS = 10  # of a file: about 5,500 tokens, so that a row fits a context of 8,192; twelve exceed 7,000
MOST_WITH_GRADIENTS = 32  # a backward has two to three times the kernels of its forward

_EVIDENCE = 500  # characters
_GUEST = Limits(wall_s=60, cpu_s=60, output_mb=16)
_REASONS = {
    Status.RAISED: Reason.UNSUPPORTED_OP,
    Status.TIMED_OUT: Reason.TIMED_OUT,
    Status.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
    Status.CRASHED: Reason.CRASHED,
}


@dataclass(frozen=True, slots=True)
class _Half:
    """One source and its arguments in a guest's reply."""

    inductor_code: str
    bindings: tuple[tuple[str, Source, str], ...]

    @property
    def bound(self) -> tuple[Binding, ...]:
        return tuple(Binding(*binding) for binding in self.bindings)


@dataclass(frozen=True, slots=True)
class _Found(_Half):
    """A guest's reply for a lowered module."""

    outputs: JsonValue
    shape_general: bool
    guards: tuple[str, ...]
    backward: _Half | None = None


_REPLY: TypeAdapter[_Found] = TypeAdapter(_Found)


def lower(
    probed: Probed, sandbox: Sandbox, training: bool = False, dtype: str = "float32", target: str = TARGET
) -> Outcome[Lowered]:
    """Lower a module to Inductor's source for `target`: `sm_80`, `sm_90`, `sm_100` or `gfx942`.

    With `training`, a second source gives the gradients of its parameters and floating-point inputs. With a half
    `dtype` the module is cast to it; the workloads of `probed` have it already, see `transforms.variants`.
    """
    most = MOST_WITH_GRADIENTS if training else MOST_KERNELS
    request = LowerRequest(
        code=probed.python_code,
        workloads=tuple(_plain(workload) for workload in probed.workloads),
        target=target,
        training=training,
        dtype=dtype,
        most_kernels=most,
    )
    report = sandbox.run(Job(LOWER, request, limits=_GUEST))
    if report.status is not Status.OK or report.reply is None:
        return Dropped(probed.id, _REASONS[report.status], report.error[:_EVIDENCE])
    if "reason" in report.reply:
        reasons = {reason.name: reason for reason in Reason if reason.stage == "lower"}
        reason = reasons.get(str(report.reply["reason"]).upper(), Reason.CRASHED)  # another one is a misbehaving guest
        return Dropped(probed.id, reason, str(report.reply.get("evidence", ""))[:_EVIDENCE])
    try:
        found = _REPLY.validate_json(canonical(report.reply))
        for guard in found.guards:
            parse_guard(guard)
    except (ValidationError, ValueError) as error:
        return Dropped(probed.id, Reason.CRASHED, f"garbled reply: {error}"[:_EVIDENCE])
    halves = [half for half in (found, found.backward) if half is not None]
    kernels = [half.inductor_code.count("async_compile.triton(") for half in halves]
    if not all(kernels):
        return Dropped(probed.id, Reason.NOTHING_TO_LOWER, "no Triton kernel")
    if sum(kernels) > most:
        return Dropped(probed.id, Reason.TOO_MANY_KERNELS, f"{sum(kernels)} kernels")
    if len(halves) != 1 + training:
        return Dropped(probed.id, Reason.CRASHED, f"garbled reply: {len(halves)} sources")
    options = canonical({"target": target, "triton": version("triton")})
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
            dtype=dtype,
        )
    )


def _plain(workload: Workload) -> dict[str, Any]:
    tensors = [{"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype} for spec in workload.tensors]
    return {"tensors": tensors, "args": workload.args, "kwargs": workload.kwargs}
