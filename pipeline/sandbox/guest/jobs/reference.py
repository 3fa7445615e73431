"""Guest job: the reference, in float64 for the oracle, and as it is for the error of honest arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource, ObservedCall
from kernelquarry.pipeline.sandbox.jobs.reference import ReferenceReply, ReferenceRequest

from ..candidate import alternate_numerics, op_census
from ..candidate.alternate_numerics import AlternateTieBreaks, decomposed, textbook
from ..candidate.candidate_call import CandidateCall, weight_sets
from ..candidate.fake_cuda import RedirectCudaToCpu
from ..candidate.module_setup import construct, digests, state
from ..candidate.op_census import Watch
from ..lib.float64 import InFloat64, wide, widened

_EXACT = 8  # whole numbers from here on stand for something, and stay what they are on exact trials


def warm() -> None:
    op_census.warm()
    alternate_numerics.warm()


def run(request: ReferenceRequest, tensors: dict[str, Tensor]) -> tuple[ReferenceReply, dict[str, Tensor]]:
    """Run the reference on each trial.

    `eager` is the module as it is, `nudged<n>` the module on values that are moved by units in the last place, computed
    by other formulas, `tied` the module with other indices of equal values, `oracle` the module in float64.
    """
    torch.set_num_threads(1)
    with RedirectCudaToCpu():
        return _Runs(request, tensors).reply()


class _Runs:
    """The runs of each trial, and their tensors."""

    def __init__(self, request: ReferenceRequest, tensors: Mapping[str, Tensor]) -> None:
        self._request = request
        self._calls = [CandidateCall.of_trial(request.trials, i, tensors) for i in range(len(request.trials))]
        self._weights = weight_sets(tensors)
        self._runs: list[dict[str, ObservedCall]] = []
        self._results: dict[str, Tensor] = {}

    def reply(self) -> tuple[ReferenceReply, dict[str, Tensor]]:
        request, calls = self._request, self._calls
        with Watch():  # as the candidate's: a state that the constructor leaves unset is the same in both
            module = _construct(request.module)
        digested, first = digests(module), calls[0]
        single = _construct(request.module).float() if request.half else module
        self._results = {f"state.{name}": value for name, value in state(module).items() if name not in first.weights}
        generator = torch.Generator().manual_seed(0)
        refused, indirect = [], []
        for index, call in enumerate(calls):
            self._runs.append({})
            try:
                self._run(module, call, index, "eager")
            except Exception:
                if not call.trial.refusable:
                    raise
                refused.append(index)
                continue
            self._run_nudged(single, call, index, generator)
            if index in request.ties:
                ties = AlternateTieBreaks(call.inputs)
                self._run(module, call, index, "tied", ties)
                indirect += [index] * ties.indirect
        if refused:
            return ReferenceReply(refused=tuple(refused)), {}
        for key, weights in self._weights.items():
            if key != first.trial.state:
                self._run(module, replace(first, weights=weights), 0, "other")
        torch.set_default_dtype(torch.float64)
        module = widened(_construct(request.module))
        for index, call in enumerate(calls):
            inputs = [wide(value) for value in call.inputs]
            self._run(module, replace(call, inputs=inputs), index, "oracle", InFloat64())
        return ReferenceReply(digested, tuple(self._runs), tuple(indirect)), self._results

    def _run(
        self, module: nn.Module, call: CandidateCall, index: int, name: str, mode: TorchDispatchMode | None = None
    ) -> None:
        call.load(module)
        result = call.run(module, mode)
        self._runs[index][name] = result.observed
        self._results |= result.tensors(f"{index}.{name}")

    def _run_nudged(self, module: nn.Module, call: CandidateCall, index: int, generator: torch.Generator) -> None:
        is_half, is_exact = self._request.half, index in self._request.exact
        finite = all(bool(value.isfinite().all()) for value in call.inputs)
        for number, units in enumerate(self._request.nudges):
            weights = {name: _nudged(_single(value, is_half), units, generator) for name, value in call.weights.items()}
            inputs = [_nudged(_single(value, is_half), units, generator, is_exact) for value in call.inputs]
            mode = textbook() if finite else None if number else decomposed()
            self._run(module, replace(call, weights=weights, inputs=inputs), index, f"nudged{number}", mode)


def _construct(source: ModuleSource) -> nn.Module:
    """Construct the module in float32 whatever the dtype of the run, as the candidate is, and cast it afterwards."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        return construct(source, "reference")
    finally:
        torch.set_default_dtype(default)


def _single(value: Tensor, is_half: bool) -> Tensor:
    return value.float() if is_half and value.is_floating_point() else value


def _nudged(tensor: Tensor, units: int, generator: torch.Generator, is_exact: bool = False) -> Tensor:
    """Each floating value moved up or down by units in its last place.

    NaN, infinities and zeros stay, and so do large whole numbers of exact trials.
    """
    if not tensor.is_floating_point():
        return tensor
    up = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.bool)
    limit = torch.tensor(torch.inf, dtype=tensor.dtype)
    moved, towards = tensor, torch.where(up, limit, -limit)
    for _ in range(units):
        moved = torch.nextafter(moved, towards)
    stays = ~tensor.isfinite() | (tensor == 0)
    if is_exact:
        stays |= (tensor == tensor.round()) & (tensor.abs() >= _EXACT)
    return torch.where(stays, tensor, moved)
