"""The larger of each two neighbours, and how many of each row are not negative."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 24]], [[7, 30]], [[30, 46]]]


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.max_pool1d(x, 2), (x >= 0).sum(dim=-1)
