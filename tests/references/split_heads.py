"""Queries, keys and values, cut from one tensor and laid out by heads."""

import torch.nn as nn

INIT_ARGS = "[3]"
WORKLOADS = [[[2, 10, 36]], [[1, 17, 45]]]


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = x.view(batch, length, 3, self.heads, width // (3 * self.heads)).permute(2, 0, 3, 1, 4)
        q, k, v = (part.contiguous() for part in parts)
        return q * q.shape[-1] ** -0.5, k, v
