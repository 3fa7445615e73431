"""In place of detectron2's layers and fvcore's initial weights."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import BatchNorm2d, ConvTranspose2d, Linear
from torch.nn.functional import batch_norm, interpolate


@dataclass
class ShapeSpec:
    """The channels, sizes and stride of a feature map."""

    channels: int = None
    height: int = None
    width: int = None
    stride: int = None


class Backbone(nn.Module):
    """A network that gives feature maps."""

    @property
    def size_divisibility(self):
        return 0


class CNNBlockBase(nn.Module):
    """A block with its numbers of channels and its stride."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.stride = stride


class Conv2d(nn.Conv2d):
    """A convolution with a norm and an activation behind it."""

    def __init__(self, *args, norm=None, activation=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm = norm
        self.activation = activation

    def forward(self, x):
        x = super().forward(x)
        if self.norm is not None:
            x = self.norm(x)
        return x if self.activation is None else self.activation(x)


class FrozenBatchNorm2d(nn.Module):
    """A batch norm by fixed values."""

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.register_buffer("weight", torch.ones(num_features))
        self.register_buffer("bias", torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features) - eps)

    def forward(self, x):
        return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


class LayerNorm(nn.Module):
    """Over the channels of (batch, channels, height, width)."""

    def __init__(self, normalized_shape, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(normalized_shape))
        self.bias = nn.Parameter(torch.zeros(normalized_shape))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(variance + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


def get_norm(norm, out_channels):
    """The norm of a name or class; None for no name."""
    if not norm:
        return None
    kinds = {
        "BN": nn.BatchNorm2d,
        "SyncBN": nn.SyncBatchNorm,
        "FrozenBN": FrozenBatchNorm2d,
        "GN": lambda channels: nn.GroupNorm(32, channels),
        "LN": LayerNorm,
    }
    return (kinds[norm] if isinstance(norm, str) else norm)(out_channels)


def cat(tensors, dim=0):
    """The tensors as one."""
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim)


def c2_xavier_fill(module):
    nn.init.kaiming_uniform_(module.weight, a=1)
    if module.bias is not None:
        nn.init.constant_(module.bias, 0)


def c2_msra_fill(module):
    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    if module.bias is not None:
        nn.init.constant_(module.bias, 0)
