"""Host side of the probe stage: run a guest, validate its reply, make the record."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from kernelquarry.pipeline.sandbox import Job, Limits, Report, Sandbox, Status
from kernelquarry.pipeline.sandbox.jobs.probe import PROBE, ProbeRequest
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import ENTRY_POINT, CallShape, Module, Probed, StateSpec, TensorSpec, Workload

from .inference import for_inference
from .positional import positional
from .render_module import is_list, render

_EVIDENCE = 500  # characters
_GUEST = Limits(wall_s=30, cpu_s=10, output_mb=16, processes=1)  # forks of the guest are not allowed


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """Largest size of a module and of one call, so that its kernels fit one file and an interpreter."""

    parameters: int = 5_000_000  # elements of parameters and buffers
    elements: int = 6_000_000  # written by all operators of one forward
    flops: int = 300_000_000  # floating-point operations of one forward
    contractions: int = 8  # convolutions and matrix products of one forward
    layers: int = 32  # replaces `contractions` where one forward has at most `kernels` distinct kernels
    kernels: int = 9  # operators that differ in kind, sizes or settings


@dataclass(frozen=True, slots=True)
class _Call:
    tensors: tuple[TensorSpec, ...]
    args: list[JsonValue]


@dataclass(frozen=True, slots=True)
class _Found:
    """The reply of a guest that found a call."""

    init_args: str
    workloads: tuple[_Call, ...]
    state: tuple[StateSpec, ...]
    outputs: JsonValue
    shapes: tuple[CallShape, ...]
    operators: tuple[str, ...]
    graph: list[JsonValue]
    behaviour: str
    behaviours: tuple[str, ...]


_REPLY: TypeAdapter[_Found] = TypeAdapter(_Found)


def probe(
    module: Module,
    sandbox: Sandbox,
    limits: ProbeLimits = ProbeLimits(),
    guest: Limits = _GUEST,
    own_inputs: str = "",
) -> Outcome[Probed]:
    """The module with constructor arguments and up to three workloads that it ran on, or the reason for a drop.

    Args:
        own_inputs: source with `get_inputs()` and `get_init_inputs()`, whose call is the only one that is tried.
    """
    code = positional(module.code)
    request = ProbeRequest(
        code, ENTRY_POINT, asdict(limits), positional(module.user), module.name, positional(own_inputs)
    )
    report = sandbox.run(Job(PROBE, request, limits=guest))
    if report.status is not Status.OK or report.reply is None:
        return failed(report, module.id)
    if "reason" in report.reply:
        return _dropped(module, report.reply)
    try:
        found = _parse(report, limits)
    except (ValidationError, ValueError) as error:
        return Dropped(module.id, Reason.CRASHED, f"garbled reply: {error}"[:_EVIDENCE])
    workloads = tuple(Workload(call.tensors, canonical(call.args)) for call in found.workloads)
    return Kept(
        Probed(
            module=replace(module, user=""),  # later stages do not need it
            init_args=found.init_args,
            workloads=workloads,
            state=found.state,
            outputs=canonical(found.outputs),
            operators=tuple(sorted(found.operators)),
            python_code=render(for_inference(code), found.init_args, workloads[0]),
            graph=canonical(found.graph),
            behaviour=found.behaviour,
            behaviours=tuple(sorted(set(found.behaviours))),
            shapes=found.shapes,
        )
    )


def failed(report: Report[Any], unit: str) -> Dropped | Errored:
    """The outcome of a record whose guest gave no reply: errored if our code in the guest raised, else dropped."""
    if report.status is Status.RAISED:
        kind, _, message = report.error.partition(": ")
        return Errored(unit, kind, message)
    return Dropped(unit, Reason(report.status.value), report.error[:_EVIDENCE])


def _dropped(module: Module, reply: dict[str, Any]) -> Dropped:
    known = {reason.value: reason for reason in Reason if reason.stage == "probe"}
    reason = known.get(str(reply["reason"]), Reason.CRASHED)
    return Dropped(module.id, reason, str(reply.get("evidence", ""))[:_EVIDENCE])


def _parse(report: Report, limits: ProbeLimits) -> _Found:
    """Check every type, index and size in a reply.

    Raises:
        ValueError: the reply is malformed.
    """
    found = _REPLY.validate_json(canonical(report.reply), strict=True)
    if not all(_is_node(node, place) for place, node in enumerate(found.graph)):
        raise ValueError("a malformed node in the graph")
    for digest in (found.behaviour, *found.behaviours):
        if not re.fullmatch(r"([0-9a-f]{16})?", digest):
            raise ValueError(f"a digest {digest[:40]!r}")
    if not found.workloads or not is_list(found.init_args):
        raise ValueError("no workload, or constructor arguments that are no list")
    for made in found.shapes:
        if len(made.further) not in (0, len(found.workloads) - 1) or not made.is_within(_MOST_AXES):
            raise ValueError(f"shapes of the call {made.call[:40]!r}")
    for call in found.workloads:
        indices = _indices(call.args)
        if not all(type(i) is int for i in indices) or sorted(indices) != list(range(len(call.tensors))):
            raise ValueError("arguments that do not name each tensor once")
        for spec in call.tensors:
            if spec.dtype not in _DTYPES or any(size < 0 for size in spec.shape):
                raise ValueError(f"a tensor of dtype {spec.dtype[:40]!r} and shape {spec.shape}")
            if spec.dtype == "int64" and not -_LARGEST <= spec.low < spec.high <= _LARGEST:
                raise ValueError(f"integers from {spec.low} to {spec.high}")
            if spec.dtype != "int64" and not -_LARGEST <= spec.low <= spec.high <= _LARGEST:
                raise ValueError(f"numbers from {spec.low} to {spec.high}")
        if sum(prod(spec.shape) for spec in call.tensors) > limits.elements:
            raise ValueError(f"inputs of more than {limits.elements} elements")
    return found


def _is_node(node: JsonValue, place: int) -> bool:
    """True for a leaf, or an operator whose inputs are earlier nodes."""
    match node:
        case [str()]:
            return True
        case [str(), list(inputs)]:
            return all(type(n) is int and 0 <= n < place for n in inputs)
    return False


_DTYPES = frozenset({"float32", "int64", "bool"})
_LARGEST = 1 << 31  # integer that an input may hold
_MOST_AXES = 32  # of what a call gives


def _indices(tree: JsonValue) -> list[Any]:
    """The index i of each `{"tensor": i}` in a tree."""
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            return [tree["tensor"]]
        return [index for value in tree.values() for index in _indices(value)]
    if isinstance(tree, list):
        return [index for value in tree for index in _indices(value)]
    return []
