"""Guest: as `loose`, on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from . import loose
from .execute import meet
from .execute import warm as warm


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `loose.score`; `gpu` is the ordinal of the GPU."""
    return loose.score(request, meet(request["gpu"]).memory), {}
