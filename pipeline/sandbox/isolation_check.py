"""The isolation of guests from this machine: a description of its layers, and a test that tries to escape them."""

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
ALLOWED = "allowed"  # what a guest replies about an act that nothing stopped


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of isolation, for `kernelquarry doctor`."""

    name: str
    active: bool
    state: str  # the active parts, or the reason that it is off
    covers: str


def describe_layers(sandbox: Sandbox) -> tuple[Layer, ...]:
    """All layers, including those that are off."""
    states = sandbox.layers
    return tuple(Layer(name, not states[name].startswith(OFF), states[name], COVERS[name]) for name in COVERS)


def attempt_escapes(sandbox: Sandbox) -> dict[str, str]:
    """Run forbidden acts in a guest. Returns for each act `ALLOWED` or the error that stopped it.

    Raises:
        SandboxError: the guest failed before it could try them.
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
            outcomes["change a folder of the host's, as the host sees it"] = ALLOWED
        return outcomes
