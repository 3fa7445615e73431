"""How fast a verified answer is, by the stage that times the dataset's rows."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Pair, Row, Timing
from kernelquarry.transforms.time import time

from .judge_answer import Judgement


def timing(judgement: Judgement, row: Row, sandbox: Sandbox, general: bool = True) -> Timing | None:
    """Of an answer that passes, on the larger call if it takes other sizes; None without a GPU."""
    if judgement.verdict is None:
        return None
    shared: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(Row)}
    pair = Pair(**shared, verdict=judgement.verdict)
    timed = time(replace(pair, triton_code=judgement.code, shape_general=general, guards=()), sandbox)
    return timed.record.timings[0] if isinstance(timed, Kept) and timed.record.timings else None


def speedup(judgement: Judgement, row: Row, sandbox: Sandbox, general: bool = True) -> float:
    """Times as fast as eager; 0 if it was not timed, or the numbers are suspect."""
    found = timing(judgement, row, sandbox, general)
    return found.over_eager if found is not None and not found.suspect else 0.0
