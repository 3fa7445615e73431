"""The first trial on the interpreter: for mutants, and for candidates that a GPU has run, to see what no GPU shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.observation import MalformedReply, read_observation
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .evidence import Rejected
from .reference import Reference
from .task import VerifySettings, describe


def call_once(
    codes: Sequence[str], reverse: Sequence[bool], reference: Reference, sandbox: Sandbox, settings: VerifySettings
) -> tuple[list[dict[str, Any]], Tensors]:
    """What the guest `mutants` says of each source, nothing of any if it has no proper reply, and the tensors.

    Args:
        reverse: of each, whether programs run from the last to the first.
    """
    request = describe(reference.task, reference.trials[:1])
    request |= {"codes": list(codes), "reverse": list(reverse), "entry_point": CANDIDATE_ENTRY_POINT}
    needed = ("input.0.", "gradient.0", "state.")
    wanted = {name: tensor for name, tensor in reference.tensors.items() if name.startswith(needed)}
    report = sandbox.run(Job("mutants", request, wanted, replace(settings.limits, processes=1)))
    runs = (report.reply or {}).get("runs")
    if not isinstance(runs, list) or len(runs) != len(codes) or not all(isinstance(run, dict) for run in runs):
        return [{} for _ in codes], {}
    return runs, report.tensors


def fails(reference: Reference, run: dict[str, Any], tensors: Tensors, number: int) -> bool:
    """Whether the call gave wrong values, or met an address outside of its tensors."""
    if "raised" in run:
        return bool(run.get("outside"))
    try:
        return not reference.is_right(0, read_observation(run, tensors, str(number)))
    except (MalformedReply, ValueError):
        return False


def check_interpreted(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """For a candidate that is right on a GPU: every address that it reads must lie in its tensors, and it must be right
    where programs run in step, too, and where they run in reverse. What the interpreter cannot run says nothing.

    Raises:
        Rejected: it reads outside of its tensors, or was right by the order in which a GPU ran it.
    """
    code = reference.task.triton_code
    runs, found = call_once([code, code], [False, True], reference, sandbox, settings)
    for number, order in enumerate(("in step", "in reverse")):
        if fails(reference, runs[number], found, number):
            raised = str(runs[number].get("raised", ""))
            if raised:
                raise Rejected(Reason.DOES_NOT_RUN, raised)
            raise Rejected(Reason.NOT_DETERMINISTIC, f"right on the GPU, and wrong where programs run {order}")
