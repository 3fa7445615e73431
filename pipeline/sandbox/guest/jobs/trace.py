"""Guest: a candidate's forward as programs for an executor; no GPU is needed, and none is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..candidate import fake_cuda, module_call, op_census
from ..candidate.input_layouts import strided, zeros
from ..candidate.launch_log import session
from ..compiler.compile_only_driver import CompileOnlyDriver, Recorder
from ..compiler.tracer import Json, Kernels, Tracer, Untraceable
from ..lib.pytree import fill, flatten
from . import compile as compiling

_MESSAGE = 500  # characters


def warm() -> None:
    compiling.warm()
    op_census.warm()


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Trace `code`'s entry point on each of `workloads`, compiled for `target`.

    The inputs are zeros and the state is what the constructor left: a program may depend on neither. Each workload
    is called twice, since the second call of a candidate may do something else.

    Replies with the module's `state` (digests), the `kernels`, a `program` for each workload, and `operators`, what
    ran outside of the kernels; or with `load_error`; or with `untraceable`, why there are no programs; or with
    `refused`, the numbers of `optional` workloads that it raises on. Binaries go as `binary.<sha256>`, constants as
    `constant.<workload>.<storage>`.
    """
    torch.set_num_threads(1)
    with fake_cuda.pretend():
        return _run(request)


def _run(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        module = nn.Module.to(module_call.constructed(request, request["code"], "candidate"), fake_cuda.DEVICE)
    except Exception as error:  # noqa: BLE001  whatever the candidate raises is the finding
        return {"load_error": f"{type(error).__name__}: {error}"[:_MESSAGE]}, {}
    reply: dict[str, Any] = {"state": module_call.digests(module)}
    CompileOnlyDriver([request["target"]]).activate()
    kernels, operators = Kernels(), set[str]()
    results: dict[str, Tensor] = {}
    reply["programs"], refused = [], list[int]()
    try:
        for index, workload in enumerate(request["workloads"]):
            session.trial = workload["trial"]
            try:
                program, constants, census = _trace(module, workload, kernels)
            except Untraceable:
                raise
            except fake_cuda.OutOfReach as why:  # a GPU knows better
                raise Untraceable(str(why)) from why
            except Exception:
                if not workload["optional"]:
                    raise
                refused.append(index)
                session.failed.clear()
                continue
            again, _, _ = _trace(module, workload, kernels)
            if again != program:
                raise Untraceable("a second call does something else")
            reply["programs"].append(program)
            operators |= census
            results |= {f"constant.{index}.{storage}": data for storage, data in constants.items()}
    except Untraceable as why:
        return {"state": reply["state"], "untraceable": str(why)[:_MESSAGE]}, {}
    if refused:
        return {"state": reply["state"], "refused": refused}, {}
    reply["kernels"], reply["operators"] = kernels.described, sorted(operators)
    return reply, results | kernels.binaries


def _trace(
    module: nn.Module, workload: Mapping[str, Any], kernels: Kernels
) -> tuple[Json, dict[int, Tensor], set[str]]:
    inputs = zeros(workload["inputs"], fake_cuda.DEVICE)
    inputs = [strided(value) for value in inputs] if workload["strided"] else inputs
    named = {f"state.{name}": value for name, value in module.state_dict(keep_vars=True).items()}
    named |= {f"input.{index}": value for index, value in enumerate(inputs)}
    tensors = {name: value for name, value in named.items() if isinstance(value, Tensor)}
    tracer = Tracer(kernels, tensors, module.buffers())
    args, kwargs = fill(json.loads(workload["args"]), inputs), fill(json.loads(workload["kwargs"]), inputs)
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
