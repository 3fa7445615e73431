"""SiLU in double precision."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[]"
WORKLOADS = [[{"shape": [13, 21], "dtype": "float64"}], [{"shape": [77], "dtype": "float64"}]]


class Model(nn.Module):
    def forward(self, x):
        return F.silu(x)
