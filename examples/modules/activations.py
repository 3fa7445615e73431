"""Activations with parameters of their own."""

import torch
from torch import nn
from torch.nn import functional as F


class Snake(nn.Module):
    """x + sin(ax)^2 / a for audio, with a frequency for each channel."""

    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        _, channels, _ = x.shape
        alpha = self.alpha.view(channels, 1)
        return x + torch.sin(alpha * x).square() / (alpha + 1e-9)


class SoftCap(nn.Module):
    """Keeps logits within (-cap, cap), and masks the padded part of the vocabulary."""

    def __init__(self, cap: float = 30.0):
        super().__init__()
        self.cap = cap

    def forward(self, logits, mask):
        capped = self.cap * torch.tanh(logits / self.cap)
        return torch.where(mask > 0, capped, -1e4)


class GatedRelu2(nn.Module):
    """Squared ReLU of one half, times the other half."""

    def forward(self, x):
        value, gate = x.chunk(2, dim=-1)
        return value * F.relu(gate).square()
