"""Running sums along a sequence."""

import torch
from torch import nn


class CausalMean(nn.Module):
    """Each step becomes a gated mean of itself and all steps before it."""

    def __init__(self, dim: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        _, length, _ = x.shape
        counts = torch.arange(1, length + 1, device=x.device)
        mean = x.cumsum(dim=1) / counts[:, None]
        return torch.lerp(x, mean, torch.sigmoid(self.gate))


class DecayedSum(nn.Module):
    """A gated linear recurrence, by a cumulative sum of logarithms."""

    def forward(self, x, log_decay):
        total = (-nn.functional.softplus(log_decay)).cumsum(dim=-1)
        return torch.exp(total) * (x * torch.exp(-total)).cumsum(dim=-1)
