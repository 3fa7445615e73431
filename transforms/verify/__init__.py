"""Verify: a candidate against its reference, in guests that never meet; the host compares."""

from .replay import Replayed, replay_pair
from .task import Task, VerifySettings
from .verify import verify

__all__ = ["Replayed", "Task", "VerifySettings", "replay_pair", "verify"]
