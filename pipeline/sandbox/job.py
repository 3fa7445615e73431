"""A guest's job and the report on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic

from .jobs.kind import GuestKind, Reply, Request
from .layers.limits import Limits
from .protocol import Tensors


@dataclass(frozen=True, slots=True)
class Job(Generic[Request, Reply]):
    """One call of `run(request, tensors)` of a module in `guest/jobs`, in its own process."""

    kind: GuestKind[Request, Reply]
    request: Request
    tensors: Tensors = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


class Status(StrEnum):
    """The way in which a guest ended. Only OK has a reply. The last three are reasons for a drop, too."""

    OK = "ok"
    RAISED = "raised"  # an exception, which the guest described
    TIMED_OUT = "timed_out"  # the deadline, or the limit on CPU time
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"  # a signal, an exit, or no complete reply


@dataclass(frozen=True, slots=True)
class Report(Generic[Reply]):
    """The result of a job. `reply`, `error` and `traceback` are the guest's claims; the host observed the rest."""

    status: Status
    reply: Reply | None  # the return value of `run`, if the status is OK
    tensors: Tensors
    error: str  # exception type and message, or the cause of the guest's end; "" if the status is OK
    traceback: str
    stderr: str  # standard output and standard error together, capped
    wall_s: float  # from the request to the reply, by the host's clock
    cpu_s: float
    peak_mb: float  # largest resident set of the guest's processes
