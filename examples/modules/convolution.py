"""Convolutions with what follows them."""

import torch
from torch import nn
from torch.nn import functional as F


class SeparableConv(nn.Module):
    """Depthwise convolution, batch norm and pointwise convolution of MobileNet."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.depthwise = nn.Conv2d(in_channels, in_channels, 3, padding=1, groups=in_channels, bias=False)
        self.norm = nn.BatchNorm2d(in_channels)
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x):
        return self.pointwise(F.relu6(self.norm(self.depthwise(x))))


class GatedCausalConv(nn.Module):
    """A WaveNet layer: dilated causal convolution, gate and residual."""

    def __init__(self, channels: int, dilation: int = 2):
        super().__init__()
        self.padding = 2 * dilation
        self.conv = nn.Conv1d(channels, 2 * channels, 3, dilation=dilation)

    def forward(self, x):
        value, gate = self.conv(F.pad(x, (self.padding, 0))).chunk(2, dim=1)
        return x + torch.tanh(value) * torch.sigmoid(gate)


class SqueezeExcite(nn.Module):
    """Scales each channel by a gate that sees the mean of all channels."""

    def __init__(self, channels: int, reduction: int = 4):
        super().__init__()
        self.squeeze = nn.Conv2d(channels, channels // reduction, 1)
        self.excite = nn.Conv2d(channels // reduction, channels, 1)

    def forward(self, x):
        pooled = x.mean(dim=(2, 3), keepdim=True)
        return x * torch.sigmoid(self.excite(F.silu(self.squeeze(pooled))))
