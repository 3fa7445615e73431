"""Layer norm with a weight and no bias."""

import torch.nn as nn

INIT_ARGS = "[24]"
WORKLOADS = [[[6, 24]], [[17, 24]], [[40, 24]]]


class Model(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d, bias=False)

    def forward(self, x):
        return self.norm(x)
