"""A transposed convolution of images, with a stride."""

import torch.nn as nn

INIT_ARGS = "[3, 4, 3, 2]"
WORKLOADS = [[[2, 3, 5, 7]], [[1, 3, 8, 4]]]


class Model(nn.Module):
    def __init__(self, inner, outer, width, stride):
        super().__init__()
        self.conv = nn.ConvTranspose2d(inner, outer, width, stride=stride, padding=1)

    def forward(self, x):
        return self.conv(x)
