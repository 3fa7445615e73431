"""How a guest prepares the module that it calls."""

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


def test_state_is_what_was_drawn_whatever_the_module_does_when_it_loads() -> None:
    module, drawn = Halved(3, 2), torch.ones(2, 3)
    bias = module.bias.detach().clone()
    load_state(module, {"weight": drawn})
    assert torch.equal(module.weight, drawn) and torch.equal(module.bias, bias)
