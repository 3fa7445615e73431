"""A convolution of images with padding and a bias."""

import torch.nn as nn

INIT_ARGS = "[3, 10, 3]"
WORKLOADS = [[[2, 3, 7, 9]], [[3, 3, 12, 5]]]


class Model(nn.Module):
    def __init__(self, inner, outer, width):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, width, padding=1)

    def forward(self, x):
        return self.conv(x)
