"""Normalizations of images and of diffusion models."""

import torch
from torch import nn


class ChannelNorm(nn.Module):
    """Layer norm over the channels of an image."""

    def __init__(self, channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        var = (x - mean).square().mean(dim=1, keepdim=True)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


class GlobalResponseNorm(nn.Module):
    """Contrast between channels, as in ConvNeXt V2."""

    def __init__(self, dim: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(dim))
        self.beta = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        norm = torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
        ratio = norm / (norm.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * ratio) + self.beta + x


class AdaptiveNorm(nn.Module):
    """Layer norm whose scale and shift follow from a condition, as in diffusion transformers."""

    def __init__(self, dim: int, cond_dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.to_scale_shift = nn.Linear(cond_dim, 2 * dim)

    def forward(self, x, cond):
        batch, _ = cond.shape
        scale_shift = self.to_scale_shift(nn.functional.silu(cond)).view(batch, 1, -1)
        scale, shift = scale_shift.chunk(2, dim=-1)
        return self.norm(x) * (1 + scale) + shift
