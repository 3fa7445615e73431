"""The job `compile`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

COMPILE = GuestKind("compile", dict[str, Any], dict[str, Any], "compile")
