"""One number: the mean of the squared differences."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21], [13, 21]], [[5, 7, 9], [5, 7, 9]]]


class Model(nn.Module):
    def forward(self, x, y):
        return nn.functional.mse_loss(x, y)
