"""The largest magnitude of each row."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]], [[17, 90]]]


class Model(nn.Module):
    def forward(self, x):
        return x.abs().amax(dim=-1)
