"""Guest side of the lower stage: a module in, Inductor's source and the meaning of its arguments out."""

from __future__ import annotations

import traceback
from typing import Any

import torch
import triton
from torch import Tensor

from .inductor import OPTIONS, generate, pretend_gpu
from .load import load_source
from .trace import Trace, Untraceable, placeholders, state_of, symbolic_sizes, trace


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Lowers `request["python_code"]` for `request["target"]`.

    Replies with `inductor_code`, `bindings`, `outputs` and `shape_general`, or with `reason` (a member of
    `Reason`) and `evidence`.
    """
    module = load_source(request["python_code"], "reference")
    torch.manual_seed(0)
    model = module.Model(*module.get_init_inputs()).eval()
    try:
        reply = _lower(model, request["workloads"], request["target"])
    except Untraceable as refusal:
        reason, evidence = refusal.args
        reply = {"reason": reason, "evidence": evidence}
    return {**reply, "torch": torch.__version__, "triton": triton.__version__}, {}


def _lower(model: torch.nn.Module, workloads: list[dict[str, Any]], target: str) -> dict[str, Any]:
    """Lowers for all workloads, and if their sizes cannot all be served by one source, for the first."""
    state = state_of(model)
    first = workloads[0]
    shapes = [[spec["shape"] for spec in workload["tensors"]] for workload in workloads]
    for symbolic in (symbolic_sizes(shapes), symbolic_sizes(shapes[:1])):
        try:
            traced = trace(model, state, first["tensors"], first["args"], first["kwargs"], symbolic)
            names = [node.name for node in placeholders(traced.graph)]
            with pretend_gpu(target):
                code = generate(traced.graph, traced.inputs, OPTIONS)
            break
        except Untraceable:
            raise
        except Exception as error:
            if not any(map(any, symbolic)):
                raise
            traceback.print_exc()
    bindings = [[name, s.source, s.name] for name, s in zip(names, state, strict=False)]
    bindings += [[name, "input", str(i)] for i, name in enumerate(names[len(state) :])]
    return {"inductor_code": code, "bindings": bindings, "outputs": traced.outputs, "shape_general": any(map(any, symbolic))}
