"""Runs untrusted code in guest processes. The host decides; what a guest says is a claim."""

from .exchange import SandboxError
from .job import Job, Report, Status
from .layers.limits import Limits
from .pool import Sandbox
from .settings import SandboxSettings

__all__ = ["Job", "Limits", "Report", "Sandbox", "SandboxError", "SandboxSettings", "Status"]
