"""Integers hashed, and the hash as a fraction."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [
    [{"shape": [6, 24], "dtype": "int32", "high": 1000}],
    [{"shape": [17, 50], "dtype": "int32", "high": 1000}],
    [{"shape": [9], "dtype": "int32", "high": 1000}],
]


class Model(nn.Module):
    def forward(self, x):
        h = (x ^ (x >> 3)) * 31
        h = h & 0x7FFF
        return torch.where(h % 2 == 0, h // 3, h * 3 + 1), (h.float() / 32768.0)
