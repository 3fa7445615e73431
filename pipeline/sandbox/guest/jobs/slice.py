"""Guest side of the stage `slice`: the calls of PyTorch that a module makes on its workloads."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.jobs.slice import SliceRequest

from ..lib import pytree
from ..lib.load_source import load_source
from ..probing.guarded_call import TooBig, attempt, seed
from ..probing.guess import Spec, draw
from ..slicing.recorder import Recorder, merged

_NAME = "sliced"


def run(request: SliceRequest, tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Record each workload. The reply has `nodes`, or `reason` (a code of `Reason`) and `evidence`."""
    torch.set_num_threads(1)
    seed(0)
    graphs: list[list[dict[str, Any]]] = []
    for i, workload in enumerate(request.workloads):
        try:
            graph, failure = attempt(lambda: _recorded(request, workload), "")  # noqa: B023  called at once
        except TooBig as error:
            return {"reason": "too_big", "evidence": str(error)}, {}
        if graph is not None:
            graphs.append(graph)
        elif i == 0:
            return {"reason": "no_workload", "evidence": str(failure)}, {}
    return {"nodes": merged(graphs)}, {}


def _recorded(request: SliceRequest, workload: dict[str, Any]) -> list[dict[str, Any]]:
    module = load_source(request.code, _NAME)
    model = module.Model(*module.get_init_inputs())
    model.eval()
    specs = tuple(Spec(s["name"], tuple(s["shape"]), s["dtype"], s["low"], s["high"]) for s in workload["tensors"])
    inputs = draw(specs, 0)
    recorder = Recorder(model, inputs, [spec.name for spec in specs], request.most_nodes, str(module.__file__))
    args = pytree.fill(json.loads(workload["args"]), inputs)
    with torch.no_grad(), recorder.with_layers():
        model(*args)
    recorder.ranges()
    return recorder.nodes
