"""The mean divergence of rows of logits."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[]"
WORKLOADS = [[[8, 40], [8, 40]], [[5, 17], [5, 17]], [[3, 300], [3, 300]]]


class Model(nn.Module):
    def forward(self, a, b):
        return F.kl_div(F.log_softmax(a, -1), F.softmax(b, -1), reduction="batchmean")
