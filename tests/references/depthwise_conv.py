"""A depthwise convolution with a stride."""

import torch.nn as nn

INIT_ARGS = "[4, 3, 2]"
WORKLOADS = [[[2, 4, 11, 9]], [[3, 4, 8, 13]]]


class Model(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, width, stride=stride, padding=width // 2, groups=channels)

    def forward(self, x):
        return self.conv(x)
