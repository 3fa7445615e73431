"""A loss."""

import torch
from torch import nn
from torch.nn import functional as F


class FocalLoss(nn.Module):
    """Binary cross entropy that looks away from easy examples."""

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0):
        super().__init__()
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits, targets):
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        hit = torch.exp(-losses)
        return (self.alpha * (1 - hit) ** self.gamma * losses).mean()
