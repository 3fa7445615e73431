"""The job `reference`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

REFERENCE = GuestKind("reference", dict[str, Any], dict[str, Any], "reference")
