"""Weights of the module under test."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.candidate.module_setup import load_state


class Halved(nn.Linear):
    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        keys = super().load_state_dict(*args, **kwargs)
        self.weight.data /= 2
        return keys


def test_the_state_is_as_drawn_although_the_module_loads_otherwise() -> None:
    module, drawn = Halved(3, 2), torch.ones(2, 3)
    bias = module.bias.detach().clone()
    load_state(module, {"weight": drawn})
    assert torch.equal(module.weight, drawn) and torch.equal(module.bias, bias)
