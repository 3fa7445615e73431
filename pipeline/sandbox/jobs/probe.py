"""The job `probe`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

PROBE = GuestKind("probe", dict[str, Any], dict[str, Any], "probe")
