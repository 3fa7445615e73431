"""The job `timing`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

TIMING = GuestKind("timing", dict[str, Any], dict[str, Any], "timing", gpu=True)
