"""A few layers in everyday styles: what `kernelquarry dataset examples/modules` builds its smallest dataset of."""

import math

import torch
from torch import nn
from torch.nn import functional as F

EPSILON = 1e-6


def gate(x: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return left * torch.sigmoid(right)


class RootMeanSquareNorm(nn.Module):
    """Divides by the root mean square of the last dimension, then scales."""

    def __init__(self, dim: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * self.scale


class GatedFeedForward(nn.Module):
    def __init__(self, dim: int, hidden_dim: int = 48):
        super().__init__()
        self.norm = RootMeanSquareNorm(dim)
        self.wide = nn.Linear(dim, 2 * hidden_dim)
        self.back = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        return x + self.back(gate(self.wide(self.norm(x))))


class ConvolutionBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int = 3):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class SelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, dim))


class PairwiseDistance(nn.Module):
    """Two inputs, one number for each row."""

    def forward(self, a, b):
        return (a - b).abs().sum(-1).sqrt()


class CopyOfNorm(nn.Module):
    """The same as RootMeanSquareNorm under other names: deduplication must find it."""

    def __init__(self, width: int):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(width))

    def forward(self, value):
        return value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + EPSILON) * self.factor


class Noise(nn.Module):
    """Random also in eval mode: no pair can be made of it."""

    def forward(self, x):
        return x + torch.randn_like(x)
