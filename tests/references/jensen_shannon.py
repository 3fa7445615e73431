"""The Jensen-Shannon divergence of two rows of logits."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[12, 90], [12, 90]], [[7, 150], [7, 150]]]


class Model(nn.Module):
    def forward(self, x, y):
        p, q = torch.log_softmax(x, -1), torch.log_softmax(y, -1)
        mean = torch.log(0.5 * (p.exp() + q.exp()))
        return 0.5 * (p.exp() * (p - mean) + q.exp() * (q - mean)).sum(-1)
