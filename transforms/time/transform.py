"""Stage `time`: rows -> rows with timings. It drops no row; without a GPU it adds nothing."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import ApplyToEach

from .time_pair import time


class TimePairs(ApplyToEach):
    work = Work("time", time, Pair, ExecutionMode.GUESTS, one_host=True)
    executes_kernels = True
