"""The job `score_kernelbench`: a candidate scored as KernelBench scores it, interpreted or on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from .kind import INTERPRETED, GuestKind


@dataclass(frozen=True, slots=True)
class KernelbenchRequest:
    reference: str  # source with `Model` and `get_inputs`
    candidate: str  # source with `ModelNew`
    trials: int  # draws of the inputs
    tolerances: tuple[float, ...]  # absolute and relative
    gpu: int | None = None  # ordinal; None: kernels are interpreted


@dataclass(frozen=True, slots=True)
class KernelbenchReply:
    compiled: bool  # the candidate was constructed
    tolerances: tuple[float, ...]  # within which it was right in all trials
    error: str  # what it raised


SCORE_KERNELBENCH = GuestKind(
    "score_kernelbench", KernelbenchRequest, KernelbenchReply, "score_kernelbench", INTERPRETED
)
SCORE_KERNELBENCH_GPU = GuestKind(
    "score_kernelbench_gpu", KernelbenchRequest, KernelbenchReply, "score_kernelbench", gpu=True
)
