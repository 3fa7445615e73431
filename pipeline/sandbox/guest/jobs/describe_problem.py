"""Guest: what a benchmark's problem asks for: its call's tensors and trees, its constructor's arguments, its state."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..candidate import fake_cuda
from ..lib.load_source import load_source


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Of the source `code` with `Model`, `get_inputs()` and `get_init_inputs()`.

    Replies with `init_args`, the Python source of a list; `inputs`: of each positional argument its `shape` and
    `dtype`, and for integers the `low` and `high` that hold all its values, or its plain `value`; and `state`: name,
    kind, shape, dtype, mean, std and minimum of each entry.
    """
    with fake_cuda.pretend():
        return _describe(request["code"]), {}


def _describe(code: str) -> dict[str, Any]:
    torch.manual_seed(0)
    namespace = vars(load_source(code, "problem"))
    arguments = list(namespace["get_init_inputs"]()) if "get_init_inputs" in namespace else []
    module = namespace["Model"](*arguments)
    parameters = {name for name, _ in module.named_parameters()}
    state = [_entry(name, value, name in parameters) for name, value in module.state_dict().items()]
    return {
        "init_args": repr(arguments),
        "inputs": [_input(value) for value in namespace["get_inputs"]()],
        "state": state,
    }


def _input(value: Any) -> dict[str, Any]:
    if not isinstance(value, Tensor):
        return {"value": value}
    described = {"shape": list(value.shape), "dtype": _dtype(value), "low": 0, "high": 0}
    if not value.is_floating_point() and value.dtype != torch.bool and value.numel():
        described |= {"low": int(value.min()), "high": int(value.max()) + 1}
    return described


def _entry(name: str, value: Tensor, parameter: bool) -> dict[str, Any]:
    values = value.double()
    return {
        "name": name,
        "kind": "parameter" if parameter else "buffer",
        "shape": list(value.shape),
        "dtype": _dtype(value),
        "mean": values.mean().item() if value.numel() else 0.0,
        "std": values.std(correction=0).item() if value.numel() else 0.0,
        "minimum": values.min().item() if value.numel() else 0.0,
    }


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
