"""The job `score_tritonbench`."""

from __future__ import annotations

from typing import Any

from .kind import INTERPRETED, GuestKind

SCORE_TRITONBENCH = GuestKind("score_tritonbench", dict[str, Any], dict[str, Any], "score_tritonbench", INTERPRETED)
SCORE_TRITONBENCH_GPU = GuestKind(
    "score_tritonbench_gpu", dict[str, Any], dict[str, Any], "score_tritonbench_gpu", gpu=True
)
