"""The job `describe_problem`."""

from __future__ import annotations

from typing import Any

from .kind import GuestKind

DESCRIBE_PROBLEM = GuestKind("describe_problem", dict[str, Any], dict[str, Any], "describe_problem")
