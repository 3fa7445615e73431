"""Guest: as `called`, on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from . import score_tritonbench
from .execute import meet
from .execute import warm as warm


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `score_tritonbench.call`; `gpu` is the ordinal of the GPU."""
    meet(request["gpu"])
    return score_tritonbench.call(request)
