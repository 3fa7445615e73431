"""The job `outline`: a candidate's module as its constructor makes it, without values of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .calls import ModuleSource
from .kind import INTERPRETED, GuestKind


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    module: ModuleSource


@dataclass(frozen=True, slots=True)
class OutlineReply:
    snapshot: Any  # see `guest/candidate/snapshot.py`


OUTLINE = GuestKind("outline", OutlineRequest, OutlineReply, "outline", INTERPRETED, shares="interpret")
