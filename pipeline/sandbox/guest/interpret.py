"""Guest: a candidate on the CPU, its kernels interpreted, every launch and operator noticed."""

from __future__ import annotations

from typing import Any

import torch

from .verifying import gpu, launch, trials, watch


def warm() -> None:
    launch.install()
    watch.warm()


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `verifying/trials.run`. The repetition runs the programs of each grid in reverse."""
    with gpu.pretend():
        return trials.run(request, tensors, gpu.DEVICE)
