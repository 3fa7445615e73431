"""Stage `tidy`: Inductor's source -> a candidate in one readable file."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Candidate
from kernelquarry.transforms.stage_transform import ApplyToEach

from .tidy_lowered import tidy


class TidyKernels(ApplyToEach):
    work = Work("tidy", tidy, Candidate, ExecutionMode.PROCESSES)
