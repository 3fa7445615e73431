"""Where the largest element of each row is, in 32 bits."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]]]


class Model(nn.Module):
    def forward(self, x):
        return x.argmax(dim=-1).to(torch.int32)
