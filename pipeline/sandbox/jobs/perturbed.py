"""The job `perturbed`."""

from __future__ import annotations

from typing import Any

from .kind import INTERPRETED, GuestKind

PERTURBED = GuestKind("perturbed", dict[str, Any], dict[str, Any], "perturbed", {**INTERPRETED, "PYTHONHASHSEED": "1"})
