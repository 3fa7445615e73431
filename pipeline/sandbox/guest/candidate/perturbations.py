"""Perturbations: ways in which a call of a candidate may differ from its trials, and must not change its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from torch import nn

from . import fake_cuda
from .candidate_call import CallResult, CandidateCall
from .launch_log import Order, session
from .op_census import Watch


@dataclass(slots=True)
class PerturbedUse:
    """A call of a candidate, which perturbations change before its module is constructed."""

    call: CandidateCall
    seed: int

    def run(self, module: nn.Module) -> CallResult:
        return self.call.run(module, Watch())


def _zero_masked(use: PerturbedUse) -> None:
    session.zero_masked = True


def _run_programs(order: Order) -> Callable[[PerturbedUse], None]:
    def change(use: PerturbedUse) -> None:
        session.order = order

    return change


def _offset(use: PerturbedUse) -> None:
    use.call = replace(use.call, offset=use.seed)


def _alike(use: PerturbedUse) -> None:
    use.call = replace(use.call, alike=True)


PERTURBATIONS: Mapping[str, Callable[[PerturbedUse], None]] = {
    "gpu": lambda use: fake_cuda.answer(fake_cuda.other_gpu(use.seed)),
    "zero_masked": _zero_masked,
    "reverse": _run_programs(Order.REVERSE),
    "random": _run_programs(Order.RANDOM),
    "offset": _offset,
    "alike": _alike,
}
