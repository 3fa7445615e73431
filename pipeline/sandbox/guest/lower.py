"""Guest side of the lower stage: a module in, Inductor's source and the meaning of its arguments out."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .load import load_source
from .lowering.devices import pretend_gpu
from .lowering.inductor import OPTIONS, generate
from .lowering.trace import Refused, State, Trace, differing_sizes, placeholders, state_of, trace


def warm() -> None:
    """Lowers a small module, which imports Inductor and fills its caches: 3 s that each guest would pay."""
    import tqdm

    tqdm.tqdm.monitor_interval = 0  # torch.fx makes a progress bar, whose monitor would be a second thread
    torch.set_num_threads(1)
    shapes = ([2, 8, 6, 8], [3, 8, 5, 7])
    layers = [nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU6(), nn.Flatten(2), nn.Softmax(-1), nn.GELU()]
    layers += [nn.Unflatten(1, (2, 4)), nn.AdaptiveAvgPool2d((None, 8)), nn.Linear(8, 4), nn.LayerNorm(4)]
    workloads = [
        {"tensors": [{"name": "x", "shape": shape, "dtype": "float32"}], "args": '[{"tensor":0}]', "kwargs": "{}"}
        for shape in shapes
    ]
    _lower(nn.Sequential(*layers).eval(), workloads, "sm_90")


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Lowers `request["python_code"]` for `request["target"]` and `request["workloads"]`.

    Replies with `inductor_code`, `bindings`, `outputs`, `shape_general` and `guards`, or with `reason` (the name of a
    member of `Reason`) and `evidence`.
    """
    module = load_source(request["python_code"], "reference")
    torch.manual_seed(0)
    model = module.Model(*module.get_init_inputs()).eval()
    try:
        return _lower(model, request["workloads"], request["target"]), {}
    except Refused as refusal:
        reason, evidence = refusal.args
        return {"reason": reason, "evidence": evidence}, {}


def _lower(model: nn.Module, workloads: Sequence[dict[str, Any]], target: str) -> dict[str, Any]:
    """Lowers for all workloads, and if one source cannot serve all their sizes, for the first."""
    state = state_of(model)
    differing = differing_sizes(workloads)
    if differing is None or not any(map(any, differing)):
        return _attempt(model, state, workloads[:1], target, None, is_general=differing is not None)
    try:
        return _attempt(model, state, workloads, target, differing, is_general=True)
    except Refused as refusal:
        if refusal.args[0] != "GRAPH_BREAK":
            raise
    except Exception:  # noqa: BLE001 - sizes as symbols are where the compiler is weakest; numbers are tried next
        traceback.print_exc()
    return _attempt(model, state, workloads[:1], target, None, is_general=False)


def _attempt(
    model: nn.Module,
    state: Sequence[State],
    workloads: Sequence[dict[str, Any]],
    target: str,
    symbolic: Sequence[Sequence[bool]] | None,
    is_general: bool,
) -> dict[str, Any]:
    """The reply for sizes as symbols where `symbolic` says so, or all as numbers.

    Raises:
        Refused: the module cannot be lowered, or what was assumed of the symbols is not true of all workloads.
    """
    traced = trace(model, state, workloads[0], symbolic)
    with pretend_gpu(target):
        code, sizes = generate(traced.graph, traced.inputs, OPTIONS)
    calls = [[spec["shape"] for spec in workload["tensors"]] for workload in workloads]
    if not all(traced.holds(shapes, sizes) for shapes in calls):
        raise Refused("GRAPH_BREAK", "depends on sizes that differ between the workloads")
    return {
        "inductor_code": code,
        "bindings": _bindings(traced, state),
        "outputs": traced.outputs,
        "shape_general": is_general,
        "guards": traced.guards(calls, sizes),
    }


def _bindings(traced: Trace, state: Sequence[State]) -> list[list[str]]:
    names = [node.name for node in placeholders(traced.graph)]
    held = [[name, s.source, s.name] for name, s in zip(names, state, strict=False)]
    return held + [[name, "input", str(index)] for index, name in enumerate(names[len(state) :])]
