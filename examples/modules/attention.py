"""Attention with and without softmax."""

import torch
from torch import nn
from torch.nn import functional as F


def rotate(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    """Rotates pairs of features by angles that grow with the position."""
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, device=x.device) / half)
    angles = positions[:, None] * frequencies
    sin, cos = angles.sin(), angles.cos()
    left, right = x[..., :half], x[..., half:]
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


class CausalAttention(nn.Module):
    """Multi-head attention to earlier positions, with rotary positions."""

    def __init__(self, dim: int, heads: int = 4, base: float = 10000.0):
        super().__init__()
        self.heads = heads
        self.base = base
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        positions = torch.arange(length, device=x.device)
        q, k = rotate(q, positions, self.base), rotate(k, positions, self.base)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(positions[None, :] > positions[:, None], float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(batch, length, dim))


class LinearAttention(nn.Module):
    """Attention without softmax, linear in the length."""

    def __init__(self, dim: int):
        super().__init__()
        self.to_qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        summary = k.transpose(1, 2) @ v
        total = k.sum(dim=1, keepdim=True)
        return (q @ summary) / ((q * total).sum(dim=-1, keepdim=True) + 1e-6)


class TemperatureSoftmax(nn.Module):
    """Softmax over masked logits, with a temperature for each head."""

    def __init__(self, heads: int):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(heads, 1, 1))

    def forward(self, scores, bias):
        return ((scores + bias) * self.log_scale.clamp(max=4.6).exp()).softmax(dim=-1)
