"""Guest job: trace a candidate's forward as programs for an executor. The guest has no GPU and needs none."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.trace import TracedCall, TraceReply, TraceRequest

from ..candidate import fake_cuda, op_census
from ..candidate.candidate_call import arguments
from ..candidate.input_layouts import strided, zeros
from ..candidate.launch_log import session
from ..candidate.module_setup import construct, digests
from ..candidate.snapshot import take_snapshot
from ..compiler.compile_only_driver import CompileOnlyDriver, Recorder
from ..compiler.deferral import deferral
from ..compiler.tracer import Json, Kernels, Tracer, Untraceable
from ..lib.faults import describe
from ..lib.pytree import flatten
from . import compile as compiling

_MESSAGE = 500  # characters


def warm() -> None:
    compiling.warm()
    op_census.warm()


def run(request: TraceRequest, tensors: dict[str, Tensor]) -> tuple[TraceReply, dict[str, Tensor]]:
    """Trace the candidate on each call, compiled for the target.

    The inputs are zeros and the state is what the constructor left: a program may depend on neither.
    """
    torch.set_num_threads(1)
    deferral.enabled = request.deferred
    with fake_cuda.pretend():
        try:
            module = nn.Module.to(construct(request.module, "candidate"), fake_cuda.DEVICE)
        except Exception as error:  # noqa: BLE001  whatever the candidate raises is the finding
            return TraceReply(load_error=describe(error)), {}
        state, snapshot = digests(module), take_snapshot(module)
        CompileOnlyDriver([request.target]).activate()
        kernels, operators, results = Kernels(), set[str](), dict[str, Tensor]()
        programs, refused = [], []
        try:
            for index, call in enumerate(request.calls):
                traced = _trace_call(module, call, kernels)
                if traced is None:
                    refused.append(index)
                    continue
                program, constants, census = traced
                programs.append(program)
                operators |= census
                results |= {f"constant.{index}.{storage}": data for storage, data in constants.items()}
        except Untraceable as why:
            return TraceReply(state=state, untraceable=str(why)[:_MESSAGE]), {}
    if refused:
        return TraceReply(state=state, refused=tuple(refused)), {}
    reply = TraceReply(
        state=state,
        snapshot=snapshot,
        programs=tuple(programs),
        kernels=tuple(kernels.described),
        sources=deferral.sources,
        operators=tuple(sorted(operators)),
    )
    return reply, results | kernels.binaries


def _trace_call(
    module: nn.Module, call: TracedCall, kernels: Kernels
) -> tuple[Json, dict[int, Tensor], set[str]] | None:
    """The program of a call, its constants and operators; None if the candidate raises, as it may.

    Raises:
        Untraceable: no program describes the call.
    """
    session.trial = call.trial
    try:
        return _trace(module, call, kernels)
    except Untraceable:
        raise
    except fake_cuda.OutOfReach as why:  # a GPU may accept it
        raise Untraceable(str(why)) from why
    except Exception:
        if not call.optional:
            raise
        session.failed.clear()
        return None


def _trace(module: nn.Module, call: TracedCall, kernels: Kernels) -> tuple[Json, dict[int, Tensor], set[str]]:
    inputs = zeros(call.inputs, fake_cuda.DEVICE)
    inputs = [strided(value) for value in inputs] if call.strided else inputs
    named = {f"state.{name}": value for name, value in module.state_dict(keep_vars=True).items()}
    named |= {f"input.{index}": value for index, value in enumerate(inputs)}
    tensors = {name: value for name, value in named.items() if isinstance(value, Tensor)}
    tracer = Tracer(kernels, tensors, module.buffers())
    args, kwargs = arguments(call, inputs)
    Recorder.listener = tracer.launch
    try:
        with torch.no_grad(), tracer:
            result = module(*args, **kwargs)
    finally:
        Recorder.listener = None
    if session.failed:
        raise Untraceable(f"a launch failed, and forward went on: {session.failed[0]}")
    if reads := sorted(name for name in tracer.operators if name.startswith("python.")):
        raise Untraceable(f"reads values with {', '.join(reads)}")
    outputs: list[Tensor] = []
    tree = flatten(result, outputs)
    if not all(type(output) in (Tensor, nn.Parameter) for output in outputs):
        raise Untraceable("an output is a subclass of torch.Tensor")
    views = [tracer.view(output.detach()) for output in outputs]
    return {**tracer.program(), "tree": tree, "outputs": views}, tracer.constants, tracer.operators
