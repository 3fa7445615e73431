"""The result of a filter that drops a row."""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason


@dataclass(frozen=True, slots=True)
class Objection:
    reason: Reason
    evidence: str  # the measured value
