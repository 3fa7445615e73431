"""A product of two matrices in bfloat16."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [
    [{"shape": [50, 70], "dtype": "bfloat16"}, {"shape": [70, 40], "dtype": "bfloat16"}],
    [{"shape": [17, 96], "dtype": "bfloat16"}, {"shape": [96, 33], "dtype": "bfloat16"}],
]


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b
