"""Chain several stages into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelquarry.pipeline.schema.outcome import Kept, Outcome


def chain(record: Any, *steps: Callable[[Any], Outcome[Any]]) -> Outcome[Any]:
    """Pass the record through the steps; the outcome of the last step, or of the first that drops the record."""
    outcome: Outcome[Any] = Kept(record)
    for step in steps:
        if not isinstance(outcome, Kept):
            break
        outcome = step(outcome.record)
    return outcome
