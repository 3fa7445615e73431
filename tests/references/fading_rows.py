"""Each line of an image is divided by its number."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[2, 3, 12, 12]], [[1, 4, 9, 9]], [[3, 2, 16, 16]]]


class Model(nn.Module):
    def forward(self, x):
        lines = torch.arange(1, x.shape[-2] + 1, device=x.device, dtype=x.dtype)
        return x / lines[:, None]
