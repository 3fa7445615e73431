"""The sandbox: runs untrusted code in guest processes, whose replies the host treats as unverified claims.

`transforms`, `recipes` and `pipeline.run` import it. Of its rooms, `guest` is the untrusted side, `jobs` and `layers`
serve both sides, and `executor` is the trusted process of a GPU.
"""

from .exchange import SandboxError
from .job import Job, Report, Status
from .layers.limits import Limits
from .pool import Sandbox
from .settings import SandboxSettings

__all__ = ["Job", "Limits", "Report", "Sandbox", "SandboxError", "SandboxSettings", "Status"]
