"""The job `outline`: a candidate's module as its constructor makes it, if it can be without values of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .calls import ModuleSource
from .kind import INTERPRETED, GuestKind


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    module: ModuleSource
    with_values: bool = False  # for constructors that need values: they take as long as in use


@dataclass(frozen=True, slots=True)
class OutlineReply:
    snapshot: Any  # see `guest/candidate/snapshot.py`


OUTLINE = GuestKind("outline", OutlineRequest, OutlineReply, "outline", INTERPRETED, shares="interpret")
