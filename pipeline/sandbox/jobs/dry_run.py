"""The job `dry_run`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

DRY_RUN = GuestKind("dry_run", dict[str, Any], dict[str, Any], "dry_run", {"PYTHONHASHSEED": "2"})
