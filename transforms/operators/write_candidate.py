"""Write a module by functions of `library`: one file with `ModelNew`, its layers and the functions that it calls."""

from __future__ import annotations

import re
from importlib.metadata import version

from kernelquarry.filters.language import check
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Probed, Purity
from kernelquarry.transforms.slice.record_calls import record_calls

from .calls import NotWritten
from .port_module import port_module

GENERATOR = Generator("library", "kernelquarry.operators", version("kernelquarry"), "{}")
_EVIDENCE = 500  # characters
_KERNEL = re.compile(r"^def (\w+_kernel)\(", re.MULTILINE)


def write_candidate(probed: Probed, sandbox: Sandbox) -> Outcome[Candidate]:
    """Record the module's calls in a guest, and write each as a call of the library."""
    recorded = record_calls(probed, sandbox)
    if not isinstance(recorded, Kept):
        return recorded
    try:
        code = port_module(probed.python_code, recorded.record)
    except NotWritten as refusal:
        return Dropped(probed.id, Reason.NOT_WRITTEN, str(refusal)[:_EVIDENCE])
    if outside := check(code, module=probed.python_code):
        return Dropped(probed.id, Reason.OUTSIDE_LANGUAGE, str(outside)[:_EVIDENCE])
    kernels = tuple(_KERNEL.findall(code))
    return Kept(Candidate(probed, code, kernels, Purity.PURE, (), True, GENERATOR, code))
