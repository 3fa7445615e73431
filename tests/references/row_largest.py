"""The largest of each row; no row of the workloads is shorter than its block."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[32, 64]], [[16, 128]], [[8, 32]]]


class Model(nn.Module):
    def forward(self, x):
        return x.amax(dim=-1)
