"""A residual is added, the sum is normalised by its root mean square; both come out."""

import torch.nn as nn

INIT_ARGS = "[50]"
WORKLOADS = [[[30, 50], [30, 50]], [[3, 7, 50], [3, 7, 50]]]


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)

    def forward(self, x, residual):
        total = x + residual
        return self.norm(total), total
