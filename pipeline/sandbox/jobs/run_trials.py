"""The jobs `interpret` and `execute`: the trials of a candidate, its kernels interpreted on a CPU, or run on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .calls import Launch, ModuleSource, ObservedCall, StateEntry, TrialCall
from .kind import INTERPRETED, GuestKind


@dataclass(frozen=True, slots=True)
class TrialsRequest:
    module: ModuleSource
    trials: tuple[TrialCall, ...]
    gpu: int | None = None  # ordinal; None: kernels are interpreted


@dataclass(frozen=True, slots=True)
class TrialsReply:
    """All trials, then a repetition of the first one, and its ghost, whose launches do nothing.

    The prefixes of their tensors are the number of the trial, `repeat` and `ghost`. `later.output.<i>` are the outputs
    of the first trial as they are after the others. A candidate that does not load, or whose state cannot take the
    weights, is not called. If the candidate raises on optional trials, the reply ends with `refused` and `broken`.
    """

    load_error: str = ""
    state: dict[str, StateEntry] = field(default_factory=dict)
    trials: tuple[ObservedCall, ...] = ()
    launches: tuple[tuple[Launch, ...], ...] = ()  # of each trial
    launch_logs: tuple[tuple[str, ...], ...] = ()  # of each interpreted trial, with arguments
    snapshot: Any = None  # the module's state as data, see `guest/candidate/snapshot.py`
    repeat: ObservedCall | None = None
    ghost: ObservedCall | None = None  # None: it raised
    operators: tuple[str, ...] = ()  # that ran outside of the kernels
    failed: tuple[str, ...] = ()  # messages of launches that raised
    refused: tuple[int, ...] = ()  # optional trials on which the candidate raised
    broken: dict[str, str] = field(default_factory=dict)  # refused trial -> message of the launch that raised in it


INTERPRET = GuestKind("interpret", TrialsRequest, TrialsReply, "run_trials", INTERPRETED)
EXECUTE = GuestKind("execute", TrialsRequest, TrialsReply, "run_trials", gpu=True)
