"""Stage `backward`: modules -> rows whose gradients were verified too."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import TrainingPair
from kernelquarry.transforms.stage_transform import ApplyToEach
from kernelquarry.transforms.verify.transform import JOBS

from .make_backward import backward


class MakeBackwardRows(ApplyToEach):
    work = Work("backward", backward, TrainingPair, ExecutionMode.GUESTS, jobs=("lower", *JOBS))
    executes_kernels = True
