"""Guest: a candidate on the CPU, its kernels interpreted, every launch and operator noticed."""

from __future__ import annotations

from typing import Any

import torch

from ..candidate import fake_cuda, op_census, run_trials
from ..interpreter import install


def warm() -> None:
    install.install()
    op_census.warm()


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `verifying/run_trials.run`. The repetition runs the programs of each grid in reverse."""
    with fake_cuda.pretend():
        return run_trials.run(request, tensors, fake_cuda.DEVICE)
