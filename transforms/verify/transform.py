"""Stage `verify`: candidates -> candidates with a verdict, and the rejected ones."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.sandbox.jobs.codegen import CODEGEN
from kernelquarry.pipeline.sandbox.jobs.compile import COMPILE
from kernelquarry.pipeline.sandbox.jobs.perturbed import PERTURBED
from kernelquarry.pipeline.sandbox.jobs.reference import REFERENCE
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET
from kernelquarry.pipeline.schema.records import Verified
from kernelquarry.transforms.stage_transform import ApplyToEach

from .verify_candidate import verify

# Started together: nearly every candidate needs all of them.
JOBS = tuple(kind.name for kind in (REFERENCE, INTERPRET, PERTURBED, COMPILE, CODEGEN))


class VerifyCandidates(ApplyToEach):
    work = Work("verify", verify, Verified, ExecutionMode.GUESTS, jobs=JOBS)
    executes_kernels = True
