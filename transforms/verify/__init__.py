"""Verify candidates: run the reference and the candidate in separate guests, and compare their outputs on the host.

Imported by `distill`, `time`, `backward`, `variants`, `pipeline.dataset`, `pipeline.cli` and `recipes`.
"""

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
