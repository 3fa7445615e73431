"""The Huber loss of each element, and its derivative, in a dictionary."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[1.5]"
WORKLOADS = [[[13, 21], [13, 21]], [[5, 7, 9], [5, 7, 9]]]


class Model(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        error = prediction - target
        loss = F.huber_loss(prediction, target, reduction="none", delta=self.delta)
        return {"loss": loss, "slope": error.clamp(-self.delta, self.delta)}
