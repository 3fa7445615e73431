"""Images enlarged by a whole number, each pixel repeated."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[3]"
WORKLOADS = [[[2, 3, 5, 7]], [[1, 2, 8, 3]]]


class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return F.interpolate(x, scale_factor=self.factor, mode="nearest")
