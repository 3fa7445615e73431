"""What stands between a guest and this machine: said, and shown by trying to get past it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .exchange import SandboxError
from .job import Job, Status
from .jobs.script import SCRIPT, ScriptRequest
from .layers import COVERS, OFF
from .layers.limits import Limits
from .pool import Sandbox

_ATTEMPTS = Path(__file__).resolve().parent / "guest" / "jobs" / "escape_attempts.py"
_LIMITS = Limits(wall_s=30)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, as `kernelquarry doctor` shows it."""

    name: str
    active: bool
    state: str  # what of it is active, or why it is off
    covers: str


def describe_layers(sandbox: Sandbox) -> tuple[Layer, ...]:
    """All layers, those that are off included."""
    states = sandbox.layers
    return tuple(Layer(name, not states[name].startswith(OFF), states[name], COVERS[name]) for name in COVERS)


def attempt_escapes(sandbox: Sandbox) -> dict[str, str]:
    """What happened when a guest tried what it must not: "allowed", or the error that stopped it, by act.

    Raises:
        SandboxError: the guest could not even try.
    """
    with tempfile.TemporaryDirectory() as folder:
        outside = Path(folder) / "outside"
        outside.write_text("of the host")
        arguments = {"outside": str(outside), "host": os.getpid()}
        report = sandbox.run(Job(SCRIPT, ScriptRequest(_ATTEMPTS.read_text(), arguments), limits=_LIMITS))
        if report.status is not Status.OK or report.reply is None:
            raise SandboxError(f"the attempts ended with {report.status}: {report.error}")
        outcomes = {str(act): str(outcome) for act, outcome in report.reply.items()}
        if not outside.is_file() or outside.read_text() != "of the host" or len(list(Path(folder).iterdir())) != 1:
            outcomes["change a folder of the host's, as the host sees it"] = "allowed"
        return outcomes
