"""Stage `lower`: probed modules -> Inductor's Triton source."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Lowered
from kernelquarry.transforms.stage_transform import ApplyToEach

from .lower_module import lower


class LowerModules(ApplyToEach):
    work = Work("lower", lower, Lowered, ExecutionMode.GUESTS, jobs=("lower",))
