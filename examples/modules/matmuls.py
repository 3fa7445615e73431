"""Matrix products with an epilogue."""

import torch
from torch import nn


class LoraLinear(nn.Module):
    """A linear layer with a low-rank update."""

    def __init__(self, in_features: int, out_features: int, rank: int = 8, alpha: float = 16.0):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.down = nn.Parameter(torch.randn(in_features, rank) * 0.02)
        self.up = nn.Parameter(torch.randn(rank, out_features) * 0.02)
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + (x @ self.down) @ self.up * self.scale


class BilinearScore(nn.Module):
    """Scores of pairs of a query and a key, between -1 and 1."""

    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim) * dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, query, key):
        return torch.tanh(query @ self.weight @ key.transpose(-2, -1) + self.bias)
