"""The corpus of `chaos.py`: modules that pass every stage, and two that are dropped."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.relu(x * self.scale) + 1.0


class CopyOfScale(nn.Module):
    """`Scale` under other names: dropped as a copy."""

    def __init__(self, dim: int):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(dim))

    def forward(self, value):
        return torch.relu(value * self.factor) + 1.0


class Distance(nn.Module):
    def forward(self, a, b):
        return (a - b).abs().sum(-1).sqrt()


class Noise(nn.Module):
    """A module that is random in evaluation mode too: dropped."""

    def forward(self, x):
        return x + torch.randn_like(x)


class Normalise(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Gate(nn.Module):
    def forward(self, x, gate):
        return torch.tanh(x) * torch.sigmoid(gate) - torch.exp(-gate.abs())


class Clipped(nn.Module):
    def __init__(self, low: float = -0.5, high: float = 0.5):
        super().__init__()
        self.low, self.high = low, high

    def forward(self, x):
        inside = torch.clamp(x, self.low, self.high)
        return torch.where(x > self.high, inside + torch.log1p(x - inside), inside)


class Attend(nn.Module):
    def forward(self, scores, bias):
        return torch.softmax(scores + bias, dim=-1)
