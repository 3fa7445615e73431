"""The job `reference`: the reference in float64 for the oracle, and as it is for the error of honest arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field

from .calls import ModuleSource, ObservedCall, StateEntry, TrialCall
from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class ReferenceRequest:
    module: ModuleSource
    trials: tuple[TrialCall, ...]
    nudges: tuple[tuple[int, ...], ...]  # of each trial: units in the last place by which nudged runs move the values
    half: bool  # the module, an input or a weight has a half dtype: nudged runs are in float32
    ties: tuple[int, ...]  # trials that are run once more with other indices of equal values
    exact: tuple[tuple[float, ...], ...]  # of each trial: values that are not moved; large whole numbers neither
    apart: bool = False  # each run starts from the constructor's state, and refused trials are left out


@dataclass(frozen=True, slots=True)
class ReferenceReply:
    """Runs of each trial by name: `oracle`, `eager`, `nudged<n>`, `tied`, and `other` for the other set of weights.

    The tensors of a run have the prefix `<trial>.<run>`. Entries of the state that no tensor of the request gives come
    as `state.<name>`. If the reference raises on refusable trials, the reply has their numbers alone; if the trials are
    run apart, it also has all other trials, and no runs of the refused ones.
    """

    state: dict[str, StateEntry] = field(default_factory=dict)
    trials: tuple[dict[str, ObservedCall], ...] = ()
    indirect: tuple[int, ...] = ()  # trials with ties among computed values
    refused: tuple[int, ...] = ()


REFERENCE = GuestKind("reference", ReferenceRequest, ReferenceReply, "reference")
