"""Stage `screen`: verified candidates -> rows that no filter objects to."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import ApplyToEach

from .screen_pair import screen


class ScreenPairs(ApplyToEach):
    work = Work("screen", screen, Pair, ExecutionMode.INLINE)
