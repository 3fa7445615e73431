"""Stage `verify`: candidates -> candidates with a verdict, and the rejected ones."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Verified
from kernelquarry.transforms.stage_transform import ApplyToEach

from .verify_candidate import verify

JOBS = ("reference", "interpret", "perturbed", "compile")  # started together: a candidate needs all of them


class VerifyCandidates(ApplyToEach):
    work = Work("verify", verify, Verified, ExecutionMode.GUESTS, jobs=JOBS)
    executes_kernels = True
