"""Guest side of the lower stage: a module in, Inductor's source and the meaning of its arguments out."""

from __future__ import annotations

import traceback
from typing import Any

import torch
import triton
from torch import Tensor

from .load import load_source
from .lowering.devices import pretend_gpu
from .lowering.inductor import OPTIONS, generate
from .lowering.trace import Trace, Untraceable, placeholders, state_of, symbolic_sizes, trace


def warm() -> None:
    """Lowers a small module, which imports Inductor and fills its caches: 3 s that each guest would pay."""
    import einops.layers.torch  # noqa: F401
    import tqdm

    tqdm.tqdm.monitor_interval = 0  # torch.fx makes a progress bar, whose monitor would be a second thread
    torch.set_num_threads(1)
    tensors = [{"name": "x", "shape": shape, "dtype": "float32"} for shape in ([2, 4, 6, 8], [3, 4, 5, 7])]
    layers = [torch.nn.Conv2d(4, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(2), torch.nn.Softmax(-1)]
    model = torch.nn.Sequential(*layers, torch.nn.GELU()).eval()
    _lower(model, [{"tensors": [spec], "args": '[{"tensor":0}]', "kwargs": "{}"} for spec in tensors], "sm_90")


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
    shapes = [[spec["shape"] for spec in workload["tensors"]] for workload in workloads]
    symbolic = symbolic_sizes(shapes)
    if any(map(any, symbolic)):
        general = _attempt(model, state, workloads, target, symbolic)
        if general is not None:
            return general
    static = [[False] * len(sizes) for sizes in symbolic]
    traced, code, _ = _generated(model, state, workloads[0], target, static)
    return _reply(traced, code, state, len(workloads) == 1 or not any(map(any, symbolic)))


def _attempt(model, state, workloads, target, symbolic):
    try:
        traced, code, sizes = _generated(model, state, workloads[0], target, symbolic)
    except Untraceable:
        raise
    except Exception:  # symbolic sizes are where the compiler is weakest; static ones are tried next
        traceback.print_exc()
        return None
    if not all(traced.holds([spec["shape"] for spec in w["tensors"]], sizes) for w in workloads):
        return None
    return _reply(traced, code, state, True)


def _generated(model, state, workload, target, symbolic):
    traced = trace(model, state, workload["tensors"], workload["args"], workload["kwargs"], symbolic)
    names = [node.name for node in placeholders(traced.graph)]
    with pretend_gpu(target):
        code, sizes = generate(traced.graph, traced.inputs, OPTIONS)
    return traced, code, sizes


def _reply(traced, code, state, shape_general):
    names = [node.name for node in placeholders(traced.graph)]
    bindings = [[name, s.source, s.name] for name, s in zip(names, state, strict=False)]
    bindings += [[name, "input", str(i)] for i, name in enumerate(names[len(state) :])]
    return {"inductor_code": code, "bindings": bindings, "outputs": traced.outputs, "shape_general": shape_general}
