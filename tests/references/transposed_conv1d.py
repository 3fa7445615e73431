"""A transposed convolution of sequences."""

import torch.nn as nn

INIT_ARGS = "[3, 5, 4]"
WORKLOADS = [[[2, 3, 10]], [[1, 3, 33]], [[4, 3, 17]]]


class Model(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.conv = nn.ConvTranspose1d(cin, cout, k, stride=2, padding=1)

    def forward(self, x):
        return self.conv(x)
