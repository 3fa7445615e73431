"""Modules that a build drops, each for another reason."""

import torch
from torch import nn


class InputNoise(nn.Module):
    """Random also in eval mode."""

    def forward(self, x):
        return x + torch.randn_like(x)


class ImageNorm(nn.Module):
    """A copy of `ChannelNorm` under other names."""

    def __init__(self, width: int, epsilon: float = 1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(width, 1, 1))
        self.shift = nn.Parameter(torch.zeros(width, 1, 1))

    def forward(self, image):
        center = image.mean(dim=1, keepdim=True)
        spread = (image - center).square().mean(dim=1, keepdim=True)
        return (image - center) / torch.sqrt(spread + self.epsilon) * self.scale + self.shift


class RootMeanSquareNorm(nn.Module):
    """A problem of two benchmarks."""

    def __init__(self, dim: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
