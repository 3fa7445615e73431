"""In place of `timm.layers` and `timm.models.layers`."""

import torch
from torch import nn
from torch.nn.init import trunc_normal_


def to_1tuple(x):
    """A sequence as a tuple; anything else, once."""
    return tuple(x) if hasattr(x, "__iter__") and not isinstance(x, str) else (x,)


def to_2tuple(x):
    """A sequence as a tuple; anything else, 2 times."""
    return tuple(x) if hasattr(x, "__iter__") and not isinstance(x, str) else (x,) * 2


def to_3tuple(x):
    """A sequence as a tuple; anything else, 3 times."""
    return tuple(x) if hasattr(x, "__iter__") and not isinstance(x, str) else (x,) * 3


def to_4tuple(x):
    """A sequence as a tuple; anything else, 4 times."""
    return tuple(x) if hasattr(x, "__iter__") and not isinstance(x, str) else (x,) * 4


def make_divisible(v, divisor=8, min_value=None, round_limit=0.9):
    """The multiple of the divisor nearest to v, but not much below it."""
    rounded = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < round_limit * v else rounded


def drop_path(x, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True):
    """Zeroes whole samples at random while training."""
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1.0 - drop_prob
    kept = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep_prob)
    return x * (kept / keep_prob if scale_by_keep and keep_prob > 0.0 else kept)


class DropPath(nn.Module):
    """Zeroes whole samples at random while training."""

    def __init__(self, drop_prob: float = 0.0, scale_by_keep: bool = True):
        super().__init__()
        self.drop_prob = drop_prob
        self.scale_by_keep = scale_by_keep

    def forward(self, x):
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep_prob = 1.0 - self.drop_prob
        kept = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep_prob)
        return x * (kept / keep_prob if self.scale_by_keep and keep_prob > 0.0 else kept)


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of (batch, channels, height, width)."""

    def __init__(self, num_channels, eps=1e-6, affine=True):
        super().__init__(num_channels, eps=eps, elementwise_affine=affine)

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Mlp(nn.Module):
    """Two linear layers with an activation between them."""

    def __init__(
        self,
        in_features,
        hidden_features=None,
        out_features=None,
        act_layer=nn.GELU,
        norm_layer=None,
        bias=True,
        drop=0.0,
    ):
        super().__init__()
        hidden_features = hidden_features or in_features
        first, second = bias if isinstance(bias, (tuple, list)) else (bias, bias)
        drop1, drop2 = drop if isinstance(drop, (tuple, list)) else (drop, drop)
        self.fc1 = nn.Linear(in_features, hidden_features, bias=first)
        self.act = act_layer()
        self.drop1 = nn.Dropout(drop1)
        self.norm = norm_layer(hidden_features) if norm_layer is not None else nn.Identity()
        self.fc2 = nn.Linear(hidden_features, out_features or in_features, bias=second)
        self.drop2 = nn.Dropout(drop2)

    def forward(self, x):
        x = self.drop1(self.act(self.fc1(x)))
        return self.drop2(self.fc2(self.norm(x)))


class ConvMlp(nn.Module):
    """Two convolutions of kernel size 1 with a norm and an activation between them."""

    def __init__(
        self,
        in_features,
        hidden_features=None,
        out_features=None,
        act_layer=nn.ReLU,
        norm_layer=None,
        bias=True,
        drop=0.0,
    ):
        super().__init__()
        hidden_features = hidden_features or in_features
        first, second = bias if isinstance(bias, (tuple, list)) else (bias, bias)
        self.fc1 = nn.Conv2d(in_features, hidden_features, 1, bias=first)
        self.norm = norm_layer(hidden_features) if norm_layer else nn.Identity()
        self.act = act_layer()
        self.drop = nn.Dropout(drop)
        self.fc2 = nn.Conv2d(hidden_features, out_features or in_features, 1, bias=second)

    def forward(self, x):
        return self.fc2(self.drop(self.act(self.norm(self.fc1(x)))))


class PatchEmbed(nn.Module):
    """The patches of images as vectors: (batch, channels, height, width) to (batch, patches, embed_dim)."""

    def __init__(
        self, img_size=224, patch_size=16, in_chans=3, embed_dim=768, norm_layer=None, flatten=True, bias=True
    ):
        super().__init__()
        self.img_size = to_2tuple(img_size)
        self.patch_size = to_2tuple(patch_size)
        self.grid_size = tuple(size // patch for size, patch in zip(self.img_size, self.patch_size))
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.flatten = flatten
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=self.patch_size, stride=self.patch_size, bias=bias)
        self.norm = norm_layer(embed_dim) if norm_layer else nn.Identity()

    def forward(self, x):
        x = self.proj(x)
        if self.flatten:
            x = x.flatten(2).transpose(1, 2)
        return self.norm(x)


class SqueezeExcite(nn.Module):
    """Scales channels by gates that are computed from their means."""

    def __init__(
        self, channels, rd_ratio=1.0 / 16, rd_channels=None, rd_divisor=8, bias=True, act_layer=nn.ReLU,
        gate_layer=nn.Sigmoid,
    ):  # fmt: skip
        super().__init__()
        rd_channels = rd_channels or make_divisible(channels * rd_ratio, rd_divisor, round_limit=0.0)
        self.fc1 = nn.Conv2d(channels, rd_channels, kernel_size=1, bias=bias)
        self.act = act_layer(inplace=True)
        self.fc2 = nn.Conv2d(rd_channels, channels, kernel_size=1, bias=bias)
        self.gate = gate_layer()

    def forward(self, x):
        return x * self.gate(self.fc2(self.act(self.fc1(x.mean((2, 3), keepdim=True)))))


def get_act_layer(name="relu"):
    """The class of an activation by its name; None for an empty name."""
    layers = {
        "celu": nn.CELU, "elu": nn.ELU, "gelu": nn.GELU, "hard_sigmoid": nn.Hardsigmoid, "hard_swish": nn.Hardswish,
        "leaky_relu": nn.LeakyReLU, "mish": nn.Mish, "prelu": nn.PReLU, "relu": nn.ReLU, "relu6": nn.ReLU6,
        "selu": nn.SELU, "sigmoid": nn.Sigmoid, "silu": nn.SiLU, "swish": nn.SiLU, "tanh": nn.Tanh,
    }  # fmt: skip
    return (layers[name] if isinstance(name, str) else name) if name else None


def use_fused_attn():
    """True, since torch has a fused function of attention."""
    return hasattr(torch.nn.functional, "scaled_dot_product_attention")
