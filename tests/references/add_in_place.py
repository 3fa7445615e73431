"""Every second column of the first input is changed in place; the first input is returned."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21], [13, 11]], [[6, 8], [6, 4]]]


class Model(nn.Module):
    def forward(self, x, y):
        x[:, ::2] += y
        return x
