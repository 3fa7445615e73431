"""The trials of a candidate in its own guest, whatever runs its kernels there."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..interpreter.memory import OutOfBounds
from . import module_call
from .launch_log import session
from .op_census import Watch

_MESSAGE = 500  # characters


def run(
    request: dict[str, Any], tensors: dict[str, torch.Tensor], device: torch.device
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Construct `code`'s entry point and call it on each of `trials`; then repeat the first, then replay its ghost.

    Tensors come as `state.<set>.<name>`, `input.<trial>.<i>` and, where a backward follows, `gradient.<trial>`; they go
    as `<trial>.output.<i>`, `repeat.output.<i>`, `later.output.<i>`, `ghost.output.<i>`. The repetition runs in memory
    with other contents before; `later` are the outputs of the first trial, as they are after those of the others; the
    ghost's launches do nothing. A candidate that does not load, or whose state cannot take the tensors, is not called.
    If it raises on trials that are `optional`, their numbers, `refused`, are in the reply, and what its kernels raised
    there, `broken`, by number, and nothing is that comes after trials.
    """
    torch.set_num_threads(1)
    try:
        with Watch():
            module = module_call.constructed(request, request["code"], "candidate")
    except Exception as error:  # noqa: BLE001  whatever the candidate raises is the finding
        return {"load_error": f"{type(error).__name__}: {error}"[:_MESSAGE]}, {}
    reply: dict[str, Any] = {"state": module_call.digests(module), "trials": [], "launches": [], "told": []}
    states = {key: module_call.selected(tensors, f"state.{key}.") for key in request["states"]}
    if not all(module_call.fits(module, state) for state in states.values()):
        return reply, {}
    nn.Module.to(module, device)
    results: dict[str, torch.Tensor] = {}
    census = Watch()
    kept: list[torch.Tensor] = []
    refused: list[int] = []
    broken: dict[str, str] = {}
    for index, trial in enumerate(request["trials"]):
        with census:
            module_call.load_state(module, states[trial["state"]])
        session.launches.clear()
        session.trial = index
        try:
            description, outputs = _observe(str(index), module, device, trial, tensors, index, census, results)
        except OutOfBounds:
            raise
        except Exception:
            if not trial["optional"]:
                raise
            refused.append(index)
            if session.failed:
                broken[str(index)] = session.failed[0]
            session.failed.clear()
            continue
        reply["trials"].append(description)
        kept = kept or outputs
        reply["launches"].append([[name, list(grid)] for name, grid in session.launches])
        reply["told"].append(session.told)
    if refused:
        return reply | {"refused": refused, "broken": broken}, {}
    results.update(module_call.pack("later", kept, []))
    first = request["trials"][0]
    again = Watch(nan=False)
    with again:
        module_call.load_state(module, states[first["state"]])
    session.reverse = True
    reply["repeat"], _ = _observe("repeat", module, device, first, tensors, 0, again, results)
    session.reverse = False
    reply["operators"] = sorted(census.operators | again.operators)
    reply["failed"] = session.failed[:8]
    session.skip = True
    try:
        reply["ghost"], _ = _observe("ghost", module, device, first, tensors, 0, Watch(), results)
    except Exception as error:  # noqa: BLE001  poisoned indices may well raise: the kernels mattered
        reply["ghost"] = {"raised": f"{type(error).__name__}: {error}"[:_MESSAGE]}
    return reply, results


def _observe(
    name: str,
    module: nn.Module,
    device: torch.device,
    trial: dict[str, Any],
    tensors: dict[str, torch.Tensor],
    index: int,
    mode: Watch,
    results: dict[str, torch.Tensor],
) -> tuple[dict[str, Any], list[torch.Tensor]]:
    inputs = [tensors[f"input.{index}.{i}"].to(device) for i in range(trial["inputs"])]
    gradient = tensors.get(f"gradient.{index}")
    description, values, mutated, outputs = module_call.call(module, trial, inputs, mode, gradient)
    results.update(module_call.pack(name, values, mutated))
    return description, outputs
