"""Changes its input, and returns it with a residual."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]]]


class Model(nn.Module):
    def forward(self, x):
        x.mul_(3.0)
        return {"tripled": x, "shifted": x + 1.0}
