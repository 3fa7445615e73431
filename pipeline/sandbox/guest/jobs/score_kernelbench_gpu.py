"""Guest: as `loose`, on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from . import score_kernelbench
from .execute import meet
from .execute import warm as warm


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `score_kernelbench.score`; `gpu` is the ordinal of the GPU."""
    return score_kernelbench.score(request, meet(request["gpu"]).memory), {}
