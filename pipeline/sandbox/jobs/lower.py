"""The job `lower`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

LOWER = GuestKind("lower", dict[str, Any], dict[str, Any], "lower", {"SYMPY_CACHE_SIZE": "None"})
