"""The job `trace`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

TRACE = GuestKind("trace", dict[str, Any], dict[str, Any], "trace")
