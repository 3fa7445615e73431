"""The job `script`: calls `main(arguments, tensors)` of a source, for the isolation check, benchmarks and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    code: str
    arguments: Any = None  # JSON


SCRIPT = GuestKind("script", ScriptRequest, dict[str, Any], "script")
SCRIPT_GPU = GuestKind("script_gpu", ScriptRequest, dict[str, Any], "script_gpu", gpu=True)
