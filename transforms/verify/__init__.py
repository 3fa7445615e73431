"""Verify: a candidate against its reference, in guests that never meet; the host compares."""

from .replay_row import Replayed, ReplayedRejection, replay_pair, replay_rejection
from .task import Task, VerifySettings
from .verify_candidate import verify

__all__ = [
    "Replayed",
    "ReplayedRejection",
    "Task",
    "VerifySettings",
    "replay_pair",
    "replay_rejection",
    "verify",
]
