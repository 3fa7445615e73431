"""How fast a verified answer is, by the stage that times the dataset's rows."""

from __future__ import annotations

from dataclasses import replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.time import time

from .judging import Judgement


def speedup(judgement: Judgement, row: Pair, sandbox: Sandbox) -> float:
    """Times as fast as eager, on the row's larger call; 0 without a GPU, or where the numbers are suspect."""
    if judgement.verdict is None:
        return 0.0
    timed = time(replace(row, triton_code=judgement.code, verdict=judgement.verdict, timings=()), sandbox)
    if not isinstance(timed, Kept) or not timed.record.timings or timed.record.timings[0].suspect:
        return 0.0
    return timed.record.timings[0].over_eager
