"""The job `run_trials`."""

from __future__ import annotations

from typing import Any

from .kind import INTERPRETED, GuestKind

INTERPRET = GuestKind("interpret", dict[str, Any], dict[str, Any], "interpret", INTERPRETED)
EXECUTE = GuestKind("execute", dict[str, Any], dict[str, Any], "execute", gpu=True)
