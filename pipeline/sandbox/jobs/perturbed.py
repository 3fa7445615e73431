"""The job `perturbed`: calls of a candidate, interpreted, in an environment that no trial has."""

from __future__ import annotations

from dataclasses import dataclass

from .calls import ModuleSource, ObservedCall, TrialCall
from .kind import INTERPRETED, GuestKind


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One call of a source."""

    code: str
    trial: int = 0
    configuration: int = 0  # of each autotuned kernel, in the second of two calls
    perturbations: tuple[str, ...] = ()  # names in `guest/candidate/perturbations.py`
    seed: int = 0  # of the perturbations
    limit_s: float = 0.0  # CPU time; 0: only the guest's limits hold


@dataclass(frozen=True, slots=True)
class PerturbedRequest:
    module: ModuleSource  # its code is that of each run in turn
    trials: tuple[TrialCall, ...]
    runs: tuple[RunSpec, ...]
    writable: tuple[str, ...] | None = None  # inputs and state that kernels may store to; None: loads and stores of
    # undefined and of lasting memory are allowed
    budget_s: float = 0.0  # CPU time of all runs that have a limit: a slow candidate gets no time for the last ones


@dataclass(frozen=True, slots=True)
class PerturbedRun:
    """One run: `call`, whose tensors have its number as prefix, or the exception that it `raised`.

    A run that exceeded its limit has neither.
    """

    call: ObservedCall | None = None
    raised: str = ""
    outside: bool = False  # a kernel left its tensors
    broken: str = ""  # message of the first launch that raised
    configurations: int = 1  # the most that one kernel has
    launch_log: tuple[str, ...] = ()  # launches with their arguments, without values


@dataclass(frozen=True, slots=True)
class PerturbedReply:
    runs: tuple[PerturbedRun, ...]


PERTURBED = GuestKind("perturbed", PerturbedRequest, PerturbedReply, "perturbed", INTERPRETED, shares="interpret")
