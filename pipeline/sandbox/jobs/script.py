"""The job `script`: calls `main(arguments, tensors)` of a source, for the isolation check and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    code: str
    arguments: Any = None  # JSON


SCRIPT = GuestKind("script", ScriptRequest, dict[str, Any], "script")
