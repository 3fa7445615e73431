"""Stage `probe`: modules -> modules with constructor arguments and workloads."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.stage_transform import ApplyToEach

from .probe_module import probe


class ProbeModules(ApplyToEach):
    work = Work("probe", probe, Probed, ExecutionMode.GUESTS, jobs=("probe",))
