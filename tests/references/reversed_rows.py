"""Rows backwards, and one-hot codes of where each has its largest element."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[]"
WORKLOADS = [[[30, 16]], [[9, 32]]]


class Model(nn.Module):
    def forward(self, x):
        return x.flip(-1), F.one_hot(x.argmax(-1), x.shape[-1])
