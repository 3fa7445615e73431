"""The job `score_tritonbench`: functions of a file, called by a TritonBench test, interpreted or on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kind import INTERPRETED, GuestKind


@dataclass(frozen=True, slots=True)
class TritonbenchRequest:
    code: str  # source of the functions
    test: str  # source with `test_*` functions
    draws: int  # seed of the random numbers that the functions draw
    timed: bool
    gpu: int | None = None  # ordinal; None: kernels are interpreted


@dataclass(frozen=True, slots=True)
class TritonbenchReply:
    """The tests' results as a tree, whose tensors are named by their number."""

    results: Any
    launches: int
    seconds: float  # of one run of the tests; 0 if they were not timed


SCORE_TRITONBENCH = GuestKind(
    "score_tritonbench", TritonbenchRequest, TritonbenchReply, "score_tritonbench", INTERPRETED
)
SCORE_TRITONBENCH_GPU = GuestKind(
    "score_tritonbench_gpu", TritonbenchRequest, TritonbenchReply, "score_tritonbench", gpu=True
)
