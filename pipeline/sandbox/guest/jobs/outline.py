"""Guest job: construct a candidate's module without values, at sizes at which no kernel could run here."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.outline import OutlineReply, OutlineRequest

from ..candidate import fake_cuda
from ..candidate.module_setup import construct
from ..candidate.snapshot import take_snapshot
from ..lib.on_meta import OnMeta


def run(request: OutlineRequest, tensors: dict[str, Tensor]) -> tuple[OutlineReply, dict[str, Tensor]]:
    torch.set_num_threads(1)
    with fake_cuda.pretend(), nullcontext() if request.with_values else OnMeta():
        module = construct(request.module, "candidate")
        if request.with_values:
            module = nn.Module.to(module, fake_cuda.DEVICE)
        return OutlineReply(take_snapshot(module)), {}
