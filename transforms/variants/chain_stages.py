"""Several stages as the steps of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelquarry.pipeline.schema.outcome import Kept, Outcome


def follow(record: Any, *steps: Callable[[Any], Outcome[Any]]) -> Outcome[Any]:
    """What the last step makes of what the others kept, or why one of them did not."""
    outcome: Outcome[Any] = Kept(record)
    for step in steps:
        if not isinstance(outcome, Kept):
            break
        outcome = step(outcome.record)
    return outcome
