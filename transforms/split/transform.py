"""Stage `split`: rows -> rows in train, validation or test, by cluster."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.stage_transform import ApplyToEach

from .assign_split import split


class SplitPairs(ApplyToEach):
    work = Work("split", split, Pair, ExecutionMode.INLINE)
