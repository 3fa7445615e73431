"""Guest job: the reference, in float64 for the oracle, and as it is for the error of honest arithmetic."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource, ObservedCall
from kernelquarry.pipeline.sandbox.jobs.reference import ReferenceReply, ReferenceRequest

from ..candidate import alternate_numerics, op_census
from ..candidate.alternate_numerics import AlternateTieBreaks, decomposed, textbook
from ..candidate.candidate_call import CandidateCall, other_weights
from ..candidate.fake_cuda import RedirectCudaToCpu
from ..candidate.module_setup import construct, digests, load_state, state
from ..candidate.op_census import Watch
from ..lib.cpu_limit import SLOWNESS, TooSlow, cpu_limit
from ..lib.float64 import InFloat64, wide, widened

_MOST_ELEMENTS = 1 << 19  # of the results of a trial that is run apart, or as many as its inputs have
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
        self._other_weights = other_weights(tensors, self._calls[0])
        self._runs: list[dict[str, ObservedCall]] = [{} for _ in self._calls]
        self._results: dict[str, Tensor] = {}
        self._initial: dict[str, Tensor] = {}  # state that each run starts from; empty: what the last run left

    def reply(self) -> tuple[ReferenceReply, dict[str, Tensor]]:
        request, calls = self._request, self._calls
        with Watch():  # as the candidate's: a state that the constructor leaves unset is the same in both
            module = _construct(request.module)
        digested, first = digests(module), calls[0]
        single = _another(module, request.module).float() if request.half else module
        exact = widened(_another(module, request.module))
        initial = state(module)
        self._results = {f"state.{name}": value for name, value in initial.items() if name not in first.weights}
        self._initial = initial if request.apart else {}
        generator = torch.Generator().manual_seed(0)
        refused, indirect = [], []
        for index, call in enumerate(calls):
            try:
                with cpu_limit(call.trial.limit_s * SLOWNESS):
                    self._run(module, call, index, "eager")
                if request.apart:
                    self._check_size(index)
            except (Exception, TooSlow):
                if not call.trial.refusable:
                    raise
                self._forget(index)
                refused.append(index)
                continue
            self._run_nudged(single, call, index, generator)
            if index in request.ties:
                ties = AlternateTieBreaks(call.inputs)
                self._run(module, call, index, "tied", ties)
                indirect += [index] * ties.indirect
        if refused and not request.apart:
            return ReferenceReply(refused=tuple(refused)), {}
        if self._other_weights and not request.apart:
            self._run(module, replace(first, weights=self._other_weights), 0, "other")
        with _float64(request.module.dtype):
            for index, call in enumerate(calls):
                if index not in refused:
                    inputs = [wide(value) for value in call.inputs]
                    self._run(exact, replace(call, inputs=inputs), index, "oracle", InFloat64())
        return ReferenceReply(digested, tuple(self._runs), tuple(indirect), tuple(refused)), self._results

    def _run(
        self, module: nn.Module, call: CandidateCall, index: int, name: str, mode: TorchDispatchMode | None = None
    ) -> None:
        load_state(module, {**self._initial, **call.weights})
        result = call.run(module, mode)
        self._runs[index][name] = result.observed
        self._results |= result.tensors(f"{index}.{name}")

    def _check_size(self, index: int) -> None:
        """Raises: MemoryError: the results of a trial's first run are too large to compare in good time."""
        own = (value.numel() for name, value in self._results.items() if name.startswith(f"{index}."))
        if sum(own) > max(_MOST_ELEMENTS, sum(value.numel() for value in self._calls[index].inputs)):
            raise MemoryError("the outputs are too large to compare")

    def _forget(self, index: int) -> None:
        self._runs[index] = {}
        self._results = {name: value for name, value in self._results.items() if not name.startswith(f"{index}.")}

    def _run_nudged(self, module: nn.Module, call: CandidateCall, index: int, generator: torch.Generator) -> None:
        is_half, numbers = self._request.half, self._request.exact[index]
        finite = all(bool(value.isfinite().all()) for value in call.inputs)
        for number, units in enumerate(self._request.nudges[index]):
            with torch._C.DisableTorchFunction():  # our own arithmetic names no GPU, and is a third of all calls
                weights = {
                    name: _nudged(_single(value, is_half), units, generator) for name, value in call.weights.items()
                }
                inputs = [_nudged(_single(value, is_half), units, generator, numbers) for value in call.inputs]
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


def _another(module: nn.Module, source: ModuleSource) -> nn.Module:
    """A second module in the same state: a copy, or constructed again if a copy could share parts with the module."""
    if any(_may_close_over(value) for part in module.modules() for value in _values(part)):
        return _construct(source)
    try:
        return copy.deepcopy(module)
    except Exception:  # noqa: BLE001  whatever the module's own methods raise
        return _construct(source)


def _values(part: nn.Module) -> Iterator[Any]:
    """Attributes and hooks of a module, without its parameters, buffers and children."""
    for name, value in vars(part).items():
        if name.endswith("_hooks"):
            yield from value.values()
        elif name not in ("_parameters", "_buffers", "_modules"):
            yield from value if isinstance(value, list | tuple) else [value]


def _may_close_over(value: Any) -> bool:
    """True for functions and partial functions: a copied module shares them, and so what they refer to."""
    return isinstance(value, FunctionType | partial)


@contextmanager
def _float64(dtype: str) -> Iterator[None]:
    """New tensors are in float64, and `torch.finfo` describes the row's dtype, on which a reference's bounds depend."""
    finfo, pinned = torch.finfo, getattr(torch, dtype)

    def pinned_finfo(kind: torch.dtype | None = None) -> torch.finfo:
        return finfo(pinned if kind in (None, torch.float64) else kind)

    torch.finfo = pinned_finfo  # type: ignore[misc, assignment]
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.finfo = finfo  # type: ignore[misc]
        torch.set_default_dtype(torch.float32)


def _single(value: Tensor, is_half: bool) -> Tensor:
    return value.float() if is_half and value.is_floating_point() else value


def _nudged(tensor: Tensor, units: int, generator: torch.Generator, exact: Sequence[float] = ()) -> Tensor:
    """Each floating value, and each part of a complex one, moved up or down by units in its last place.

    NaN, infinities and zeros stay, and so do the numbers `exact` and with them large whole numbers.
    """
    if tensor.is_complex():
        return torch.view_as_complex(_nudged(torch.view_as_real(tensor), units, generator))
    if not tensor.is_floating_point():
        return tensor
    up = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.bool)
    moved = _moved(tensor, 2 * units * up - units)
    stays = ~tensor.isfinite() | (tensor == 0)
    if exact:
        stays |= (tensor == tensor.round()) & (tensor.abs() >= _EXACT)
        stays |= torch.isin(tensor, torch.tensor(exact, dtype=tensor.dtype))
    return torch.where(stays, tensor, moved)


_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by size in bytes


def _moved(tensor: Tensor, units: Tensor) -> Tensor:
    """The floating values `units` places further in their order, at most at infinity, as repeated `nextafter` gives."""
    kind = _INTEGERS[tensor.element_size()]
    highest = torch.iinfo(kind).max
    order = _mirrored(tensor.contiguous().view(kind).long(), highest)  # negative numbers count backwards from -0
    infinity = int(torch.tensor(torch.inf, dtype=tensor.dtype).view(kind))
    order = (order + units).clamp_(-infinity, infinity)
    return _mirrored(order, highest).to(kind).view(tensor.dtype).reshape(tensor.shape)


def _mirrored(numbers: Tensor, highest: int) -> Tensor:
    """`-highest - 1 - n` in place of each negative n: a `torch.where` on mixed signs takes ten times as long."""
    negative = numbers >> 63  # 0 or -1
    return (numbers ^ (negative & highest)).sub_(negative)
