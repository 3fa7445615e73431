"""The job `dry_run`: the operators and launches of a candidate's forward at other sizes.

No kernel runs or is compiled, so large sizes cost little: memory that nobody writes to is not allocated.
"""

from __future__ import annotations

from dataclasses import dataclass

from .calls import InputSpec, ModuleSource
from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class DryCall:
    """A call on inputs that hold zeros."""

    args: str
    kwargs: str
    inputs: tuple[InputSpec, ...]
    trial: int
    steps: int | None = None  # the path is cut off behind so many; None: it may be of any length
    otherwise: DryCall | None = None  # made in its place if it raises


@dataclass(frozen=True, slots=True)
class DryRunRequest:
    module: ModuleSource
    calls: tuple[DryCall, ...]
    cut_off: str  # last step of a path that is cut off


@dataclass(frozen=True, slots=True)
class DryPath:
    """A call's operators, views and allocations excepted, and launches, in order."""

    path: list[str] | None  # None: the call raised
    launch_log: tuple[str, ...] = ()  # launches with their arguments, without values
    raised: str = ""


@dataclass(frozen=True, slots=True)
class DryRunReply:
    calls: tuple[DryPath, ...]


DRY_RUN = GuestKind("dry_run", DryRunRequest, DryRunReply, "dry_run", {"PYTHONHASHSEED": "2"})
