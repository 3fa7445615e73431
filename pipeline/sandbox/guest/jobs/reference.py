"""Guest: the reference, in float64 for the oracle, and as it is for the error that honest arithmetic makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ..candidate import alternate_numerics, module_call, op_census
from ..candidate.alternate_numerics import AnotherOfEquals, decomposed, textbook
from ..candidate.fake_cuda import Here
from ..candidate.op_census import Watch
from ..lib.float64 import InFloat64, wide, widened

_MEANING = 8  # smaller whole numbers are on edges, of which the side is nobody's promise


def warm() -> None:
    op_census.warm()
    alternate_numerics.warm()


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Run `code`'s entry point on each of `trials`: once in float64, once as it is, cast to `dtype` if that is a half
    one, and in float32 on nudged values, one run for each of `nudges`: by how many units in the last place they moved.
    So are inputs and weights there, where something is `half`. On trials among `ties` it is run once more, and of
    equals another counts; `indirect` are those in which that may be of values that it computes. On trials that are
    `exact` large whole numbers stay what they are.

    If it raises on trials that are `refusable`, their numbers, `refused`, are the reply, and nothing else is.

    Tensors come as `state.<set>.<name>`, `input.<trial>.<i>` and, where a backward follows, `gradient.<trial>`; they go
    as `<trial>.<run>.output.<i>`, where run is `oracle`, `eager`, `nudged<n>`, `tied`, or, for the first trial,
    `other`: with the other set of state. Entries of the state that no tensor came for go as `state.<name>`, as the
    constructor left them.
    """
    torch.set_num_threads(1)
    with Here():
        return _run(request, tensors)


def _run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with Watch():  # as the candidate's: a state that the constructor leaves unset is the same in both
        module = _construct(request)
    reply: dict[str, Any] = {"state": module_call.digests(module), "trials": [], "indirect": []}
    states = {key: module_call.selected(tensors, f"state.{key}.") for key in request["states"]}
    drawn = states[request["states"][0]]
    is_half = request["half"]
    single = _construct(request).float() if is_half else module
    results = {f"state.{name}": value for name, value in module_call.state(module).items() if name not in drawn}
    trials = [
        (trial, _inputs(tensors, index, trial), tensors.get(f"gradient.{index}"))
        for index, trial in enumerate(request["trials"])
    ]
    generator = torch.Generator().manual_seed(0)
    refused: list[int] = []
    for index, (trial, inputs, gradient) in enumerate(trials):
        state = states[trial["state"]]
        try:
            runs = {"eager": _call(module, state, trial, inputs, gradient, f"{index}.eager", results)}
        except Exception:
            if not trial["refusable"]:
                raise
            refused.append(index)
            continue
        finite = all(bool(value.isfinite().all()) for value in inputs)
        for nudge, units in enumerate(request["nudges"]):
            moved = {name: _nudged(_single(value, is_half), units, generator) for name, value in state.items()}
            exact = index in request["exact"]
            near = [_nudged(_single(value, is_half), units, generator, exact) for value in inputs]
            mode = textbook() if finite else None if nudge else decomposed()
            name = f"nudged{nudge}"
            runs[name] = _call(single, moved, trial, near, gradient, f"{index}.{name}", results, mode)
        if index in request["ties"]:
            ties = AnotherOfEquals(inputs)
            runs["tied"] = _call(module, state, trial, inputs, gradient, f"{index}.tied", results, ties)
            reply["indirect"] += [index] * ties.indirect
        reply["trials"].append(runs)
    if refused:
        return {"refused": refused}, {}
    for key in request["states"]:
        if key != trials[0][0]["state"]:
            reply["trials"][0]["other"] = _call(module, states[key], *trials[0], "0.other", results)
    torch.set_default_dtype(torch.float64)
    module = widened(_construct(request))
    for index, (trial, inputs, gradient) in enumerate(trials):
        wider = [wide(value) for value in inputs]
        runs = reply["trials"][index]
        state, name = states[trial["state"]], f"{index}.oracle"
        runs["oracle"] = _call(module, state, trial, wider, gradient, name, results, InFloat64())
    return reply, results


def _construct(request: dict[str, Any]) -> nn.Module:
    """Values that the constructor computes are float32, then cast, in every run: they are the candidate's too."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        return module_call.constructed(request, request["code"], "reference")
    finally:
        torch.set_default_dtype(default)


def _single(value: Tensor, is_half: bool) -> Tensor:
    return value.float() if is_half and value.is_floating_point() else value


def _inputs(tensors: Mapping[str, Tensor], index: int, trial: Mapping[str, Any]) -> list[Tensor]:
    return [tensors[f"input.{index}.{i}"] for i in range(trial["inputs"])]


def _call(
    module: nn.Module,
    state: Mapping[str, Tensor],
    trial: Mapping[str, Any],
    inputs: Sequence[Tensor],
    gradient: Tensor | None,
    name: str,
    results: dict[str, Tensor],
    mode: TorchDispatchMode | None = None,
) -> dict[str, Any]:
    module_call.load_state(module, state)
    description, outputs, mutated, _ = module_call.call(module, trial, inputs, mode, gradient)
    results.update(module_call.pack(name, outputs, mutated))
    return description


def _nudged(tensor: Tensor, units: int, generator: torch.Generator, exact: bool = False) -> Tensor:
    """Each floating value moved up or down by units in its last place; NaN, infinities and zeros are exact, and so may
    be whole numbers that stand for something."""
    if not tensor.is_floating_point():
        return tensor
    up = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.bool)
    limit = torch.tensor(torch.inf, dtype=tensor.dtype)
    moved, towards = tensor, torch.where(up, limit, -limit)
    for _ in range(units):
        moved = torch.nextafter(moved, towards)
    stays = ~tensor.isfinite() | (tensor == 0)
    if exact:
        stays |= (tensor == tensor.round()) & (tensor.abs() >= _MEANING)
    return torch.where(stays, tensor, moved)
