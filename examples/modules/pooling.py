"""Ways to pool an image."""

import torch
from torch import nn
from torch.nn import functional as F


class GeneralizedMeanPool(nn.Module):
    """Between mean and maximum, with a learned exponent; for image retrieval."""

    def __init__(self, p: float = 3.0, eps: float = 1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(p))
        self.eps = eps

    def forward(self, x):
        return x.clamp(min=self.eps).pow(self.p).mean(dim=(-2, -1)).pow(1 / self.p)


class MixedPool(nn.Module):
    """Learned mixture of maximum and average pooling."""

    def __init__(self, channels: int):
        super().__init__()
        self.mix = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x):
        share = torch.sigmoid(self.mix)
        return share * F.max_pool2d(x, 3, stride=2, padding=1) + (1 - share) * F.avg_pool2d(x, 3, stride=2, padding=1)
