"""The verdict on a kernel, as data and as JSON."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CounterExample, Purity, Timing, Workload
from kernelquarry.transforms.verify.answer import HACKS, Step, step_of

Shapes = tuple[tuple[int, ...], ...]  # of all inputs of a call


class Status(StrEnum):
    VERIFIED = "verified"
    REJECTED = "rejected"
    UNJUDGED = "unjudged"  # the module, the machine or the time limit allows no verdict, or the kernel's language


@dataclass(frozen=True, slots=True)
class TrialErrors:
    """Errors of one trial against the oracle, relative to the oracle's scale."""

    shapes: Shapes
    seed: int
    distribution: str
    error: float
    honest_error: float  # of PyTorch itself
    tolerance: float


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The verdict on one kernel. True in a condition if the kernel is verified."""

    status: Status
    reason: str = ""  # code of the reason, see docs/reference/reasons.md; "" unless rejected
    evidence: str = ""  # measured value or message
    sizes: tuple[Shapes, ...] = ()  # input shapes of the calls that the kernel was checked on
    given: Shapes = ()  # input shapes of the module as given; () if unknown
    note: str = ""  # a limitation of this verdict
    narrowed: tuple[str, ...] = ()  # conditions under which the kernel is verified, and code that no check ran
    trials: tuple[TrialErrors, ...] = ()
    counter_example: CounterExample | None = None  # the smallest known call on which the kernel fails
    purity: str = ""  # "pure": kernels alone compute; "mixed": so do the operators in `torch_operators`
    torch_operators: tuple[str, ...] = ()
    engine: str = ""  # that ran the kernels: "interpreter", "trace" or "guest"
    targets: tuple[str, ...] = ()  # architectures that the kernels were compiled for
    launches: int = 0  # in one call
    kernels: tuple[str, ...] = ()
    deterministic: bool = False  # a repeated call gave the same bytes
    timing: Timing | None = None
    wall_s: float = 0.0

    def __bool__(self) -> bool:
        return self.status is Status.VERIFIED

    @property
    def headline(self) -> str:
        """`VERIFIED`, `REJECTED wrong_values: ...` or `UNJUDGED ...`, on one line."""
        if self.status is Status.VERIFIED:
            return f"VERIFIED {self.purity}"
        cause = f"{self.reason}: {self.evidence}" if self.reason else self.evidence
        return f"{self.status.upper()} {' '.join(cause.split())}"

    @property
    def exit_status(self) -> int:
        return {Status.VERIFIED: 0, Status.REJECTED: 1, Status.UNJUDGED: 2}[self.status]

    @property
    def cause(self) -> Reason | None:
        """The reason of a rejection."""
        return Reason(self.reason) if self.reason else None

    @property
    def step(self) -> Step:
        """The last step of an answer that the kernel reached, for rewards."""
        return step_of(Purity(self.purity) if self else None, self.cause)

    @property
    def hack(self) -> str:
        """Class of the hack; "" for a kernel that is none."""
        return HACKS.get(self.cause, "") if self.cause else ""

    @property
    def speedup(self) -> float:
        """Speedup over eager; 0 if the kernel was not timed, or the timing is suspect."""
        return self.timing.over_eager if self.timing is not None and not self.timing.suspect else 0.0

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON: its fields, and `speedup`."""
        fields: dict[str, Any] = _plain(dataclasses.asdict(self))
        return fields | {"speedup": self.speedup}


def _plain(value: Any) -> Any:
    """The value without NaN and infinities, which JSON lacks: they become text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def shapes_of(workload: Workload) -> Shapes:
    return tuple(spec.shape for spec in workload.tensors)
