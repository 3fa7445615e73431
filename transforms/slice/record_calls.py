"""Record in a guest the calls of PyTorch that a module makes on its workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, Status
from kernelquarry.pipeline.sandbox.jobs.slice import SLICE, SliceRequest
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.probe.probe_module import failed

from .traced_graph import Node, parse_graph

MOST_NODES = 400
_EVIDENCE = 500  # characters
_GUEST = Limits(wall_s=30, cpu_s=10, output_mb=16, processes=1)


def record_calls(probed: Probed, sandbox: Sandbox) -> Outcome[Sequence[Node]]:
    """The calls of the module, or the reason why they could not be recorded."""
    workloads = tuple({"tensors": [asdict(t) for t in one.tensors], "args": one.args} for one in probed.workloads)
    report = sandbox.run(Job(SLICE, SliceRequest(probed.python_code, workloads, MOST_NODES), limits=_GUEST))
    if report.status is not Status.OK or report.reply is None:
        return failed(report, probed.id)
    if "reason" in report.reply:
        known = {Reason.TOO_BIG.value: Reason.TOO_BIG, Reason.NO_WORKLOAD.value: Reason.NO_WORKLOAD}
        reason = known.get(str(report.reply["reason"]), Reason.CRASHED)
        return Dropped(probed.id, reason, str(report.reply.get("evidence", ""))[:_EVIDENCE])
    try:
        graph = parse_graph(report.reply.get("nodes"))
    except ValueError as error:
        return Dropped(probed.id, Reason.CRASHED, f"garbled reply: {error}"[:_EVIDENCE])
    return Kept(graph)
