"""A bounded ReLU, and layers that do nothing in evaluation."""

import torch.nn as nn

INIT_ARGS = "[0.3]"
WORKLOADS = [[[4, 3, 5, 7]], [[2, 6, 3, 4]]]


class Model(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.act = nn.ReLU6()
        self.drop = nn.Dropout(p)
        self.flat = nn.Flatten()

    def forward(self, x):
        return self.flat(self.drop(self.act(x)))
