"""The cosine of the angle between rows; a row of zeros has none, and gives 0."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21], [13, 21]], [[40, 9], [40, 9]]]


class Model(nn.Module):
    def forward(self, x, y):
        return nn.functional.cosine_similarity(x, y, dim=-1, eps=1e-8)
