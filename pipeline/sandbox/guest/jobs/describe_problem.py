"""Guest job: the call, the constructor's arguments and the state of a benchmark's problem."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.pipeline.sandbox.jobs.describe_problem import (
    ProblemInput,
    ProblemReply,
    ProblemRequest,
    ProblemState,
)

from ..candidate import fake_cuda
from ..lib.load_source import load_source


def run(request: ProblemRequest, tensors: dict[str, Tensor]) -> tuple[ProblemReply, dict[str, Tensor]]:
    with fake_cuda.pretend():
        return _describe(request.code), {}


def _describe(code: str) -> ProblemReply:
    torch.manual_seed(0)
    namespace = vars(load_source(code, "problem"))
    arguments = list(namespace["get_init_inputs"]()) if "get_init_inputs" in namespace else []
    module = namespace["Model"](*arguments)
    parameters = {name for name, _ in module.named_parameters()}
    state = tuple(_entry(name, value, name in parameters) for name, value in module.state_dict().items())
    return ProblemReply(repr(arguments), tuple(_input(value) for value in namespace["get_inputs"]()), state)


def _input(value: Any) -> ProblemInput:
    if not isinstance(value, Tensor):
        return ProblemInput(value=value)
    low = high = 0
    if not value.is_floating_point() and value.dtype != torch.bool and value.numel():
        low, high = int(value.min()), int(value.max()) + 1
    return ProblemInput(InputSpec(tuple(value.shape), _dtype(value), low, high))


def _entry(name: str, value: Tensor, is_parameter: bool) -> ProblemState:
    values = value.double()
    mean, std, minimum = (values.mean(), values.std(correction=0), values.min()) if value.numel() else (0.0,) * 3
    kind = "parameter" if is_parameter else "buffer"
    return ProblemState(name, kind, tuple(value.shape), _dtype(value), float(mean), float(std), float(minimum))


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
