"""Products of all columns with each other."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[50, 24]], [[33, 17]]]


class Model(nn.Module):
    def forward(self, x):
        return x.t() @ x / x.shape[0]
