"""Images enlarged by two, interpolated between pixels."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[]"
WORKLOADS = [[[2, 3, 5, 7]], [[1, 2, 8, 3]]]


class Model(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
