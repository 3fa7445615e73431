"""The job `score_kernelbench`."""

from __future__ import annotations

from typing import Any

from .kind import INTERPRETED, GuestKind

SCORE_KERNELBENCH = GuestKind("score_kernelbench", dict[str, Any], dict[str, Any], "score_kernelbench", INTERPRETED)
SCORE_KERNELBENCH_GPU = GuestKind(
    "score_kernelbench_gpu", dict[str, Any], dict[str, Any], "score_kernelbench_gpu", gpu=True
)
