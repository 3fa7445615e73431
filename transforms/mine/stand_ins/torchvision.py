"""In place of the blocks that torchvision's models are made of."""

import torch
from timm.layers import make_divisible as _make_divisible
from torch import nn


def _log_api_usage_once(obj):
    """Nothing is logged."""


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation."""

    def __init__(
        self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm2d,
        activation_layer=nn.ReLU, dilation=1, inplace=True, bias=None, conv_layer=nn.Conv2d,
    ):  # fmt: skip
        if padding is None:
            if isinstance(kernel_size, int) and isinstance(dilation, int):
                padding = (kernel_size - 1) // 2 * dilation
            else:
                sizes = kernel_size if isinstance(kernel_size, (tuple, list)) else [kernel_size] * len(dilation)
                steps = dilation if isinstance(dilation, (tuple, list)) else [dilation] * len(sizes)
                padding = tuple((size - 1) // 2 * step for size, step in zip(sizes, steps))
        bias = norm_layer is None if bias is None else bias
        layers = [
            conv_layer(
                in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer() if inplace is None else activation_layer(inplace=inplace))
        super().__init__(*layers)
        self.out_channels = out_channels


Conv2dNormActivation = ConvNormActivation


class SqueezeExcitation(nn.Module):
    """Scales channels by gates that are computed from their means."""

    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class StochasticDepth(nn.Module):
    """Zeroes samples, or the whole batch, at random while training."""

    def __init__(self, p, mode):
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input):
        if not self.training or self.p == 0.0:
            return input
        rows = input.shape[0] if self.mode == "row" else 1
        kept = torch.empty(rows, *[1] * (input.ndim - 1), dtype=input.dtype, device=input.device)
        return input * kept.bernoulli_(1.0 - self.p).div_(1.0 - self.p)


class MLP(nn.Sequential):
    """Linear layers with norms and activations between them."""

    def __init__(
        self, in_channels, hidden_channels, norm_layer=None, activation_layer=nn.ReLU, inplace=None, bias=True,
        dropout=0.0,
    ):  # fmt: skip
        options = {} if inplace is None else {"inplace": inplace}
        layers, size = [], in_channels
        for hidden in hidden_channels[:-1]:
            layers.append(nn.Linear(size, hidden, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(hidden))
            layers += [activation_layer(**options), nn.Dropout(dropout, **options)]
            size = hidden
        layers += [nn.Linear(size, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **options)]
        super().__init__(*layers)


class Permute(nn.Module):
    """The axes in another order."""

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return torch.permute(x, self.dims)
