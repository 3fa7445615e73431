"""Where each column has its smallest element."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]]]


class Model(nn.Module):
    def forward(self, x):
        return x.argmin(dim=0)
