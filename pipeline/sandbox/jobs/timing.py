"""The job `timing`: the reference, the reference under `torch.compile`, and the candidate, timed on one GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .calls import InputSpec, ModuleSource
from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class TimingRequest:
    """A call, and a candidate: its source, or a program with its kernels.

    Binaries of a program come as `binary.<sha256>`, its constants as `constant.0.<storage>`.
    """

    gpu: int  # ordinal
    reference: ModuleSource
    args: str
    kwargs: str
    inputs: tuple[InputSpec, ...]
    candidate: ModuleSource | None = None
    program: Any = None
    kernels: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class TimingReply:
    """Times of all rounds, and facts about one call. State entries that the program uses come as `state.<name>`."""

    times: dict[str, tuple[float, ...]]  # contender -> microseconds of each round
    left_out: dict[str, str]  # contender -> why it has no times
    written: int  # bytes that the reference had to write
    flops: int  # of the reference's matrix products and convolutions
    wrong: float  # share of the candidate's elements


TIMING = GuestKind("timing", TimingRequest, TimingReply, "timing", gpu=True)
