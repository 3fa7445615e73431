"""Binaries of deferred kernels: from the cache of compiled kernels, else from the job `codegen`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.codegen import CODEGEN, CodegenRequest, KernelSource
from kernelquarry.pipeline.sandbox.kernel_cache import Binary
from kernelquarry.pipeline.schema.reasons import Reason

from .evidence import Rejected, reply_of


def compile_sources(sources: Mapping[str, KernelSource], sandbox: Sandbox, limits: Limits) -> dict[str, Binary | str]:
    """The binary of each source, or the error of the compiler. All that the cache lacks is compiled in one guest.

    Raises:
        Rejected: the compiler crashes, or exceeds the limits.
    """
    if not sources:
        return {}
    compiled: dict[str, Binary | str] = {}
    for name, source in sources.items():
        if (known := sandbox.kernels.get(source, version("triton"))) is not None:
            compiled[name] = known
    missing = {name: source for name, source in sources.items() if name not in compiled}
    if not missing:
        return compiled
    report = sandbox.run(Job(CODEGEN, CodegenRequest(tuple(missing.values())), {}, limits))
    reply = reply_of(report, Reason.DOES_NOT_COMPILE)
    if len(reply.kernels) != len(missing):
        raise Rejected(Reason.CRASHED, f"the compiler's guest gave {len(reply.kernels)} kernels of {len(missing)}")
    for number, ((name, source), kernel) in enumerate(zip(missing.items(), reply.kernels, strict=True)):
        data = report.tensors.get(f"binary.{number}")
        if kernel.error or data is None:
            compiled[name] = kernel.error or "no binary"
        else:
            compiled[name] = sandbox.kernels.put(source, reply.triton, kernel, data.numpy().tobytes())
    return compiled
