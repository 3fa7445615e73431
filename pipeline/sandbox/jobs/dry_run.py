"""The job `dry_run`: the operators and launches of a candidate's forward at other sizes and after many calls.

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
    repeats: int  # further calls of the first
    sizes: tuple[DryCall, ...]  # calls of other sizes, whose paths are not looked at
    seed: int  # of the module's name, and of places in memory
    mixed: bool  # the candidate may run operators of PyTorch
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
    later: tuple[DryPath, ...]  # the first of the repetitions that took another path than the first call, or none
    handled: str  # the first exception that the candidate caught; "" for none
    keeps: str  # what it keeps that still changes after `repeats / 2` calls; "" for nothing
    left: str  # what it changed of what other modules share; "" for nothing


DRY_RUN = GuestKind("dry_run", DryRunRequest, DryRunReply, "dry_run", {"PYTHONHASHSEED": "2"})
