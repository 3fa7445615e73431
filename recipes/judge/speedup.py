"""Speed of a verified answer, measured as the dataset's rows are."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Pair, Row, Timing
from kernelquarry.transforms.time import time

from .judge_answer import Judgement


def timing(judgement: Judgement, row: Row, sandbox: Sandbox, general: bool = True) -> Timing | None:
    """The timing of an answer that passes, on the larger workload if `general`; None if it fails or without a GPU."""
    if judgement.verdict is None:
        return None
    shared: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(Row)}
    pair = Pair(**shared, verdict=judgement.verdict)
    timed = time(replace(pair, triton_code=judgement.code, shape_general=general, guards=()), sandbox)
    return timed.record.timings[0] if isinstance(timed, Kept) and timed.record.timings else None


def speedup(judgement: Judgement, row: Row, sandbox: Sandbox, general: bool = True) -> float:
    """Speedup over eager; 0 if the answer was not timed or the timing is suspect."""
    measured = timing(judgement, row, sandbox, general)
    return measured.over_eager if measured is not None and not measured.suspect else 0.0
