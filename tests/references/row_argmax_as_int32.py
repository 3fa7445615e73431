"""Index of the largest element of each row, as int32."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]]]


class Model(nn.Module):
    def forward(self, x):
        return x.argmax(dim=-1).to(torch.int32)
