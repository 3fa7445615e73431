"""Each row of a table times its scale."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[8, 64], [8]], [[7, 23], [7]], [[16, 32], [16]]]


class Model(nn.Module):
    def forward(self, x, scale):
        return x * scale[:, None]
