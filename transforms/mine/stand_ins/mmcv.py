"""In place of the layers and helpers of mmcv and mmengine that OpenMMLab's models are made of.

Values of weights are those of torch's layers: what a module computes does not depend on them.
"""

import functools
import logging
import math

import torch
from timm.layers import DropPath, make_divisible, to_1tuple, to_2tuple, to_3tuple, to_4tuple
from torch import nn
from torch.nn.functional import interpolate
from torch.nn.init import trunc_normal_


class BaseModule(nn.Module):
    """A module that may be given a configuration of its initial weights."""

    def __init__(self, init_cfg=None):
        super().__init__()
        self.init_cfg = init_cfg

    def init_weights(self):
        """Initialise the weights of all parts."""
        for child in self.children():
            if hasattr(child, "init_weights"):
                child.init_weights()


class Sequential(BaseModule, nn.Sequential):
    """Modules that are called one after another."""

    def __init__(self, *args, init_cfg=None):
        BaseModule.__init__(self, init_cfg)
        nn.Sequential.__init__(self, *args)


class ModuleList(BaseModule, nn.ModuleList):
    """A list of modules."""

    def __init__(self, modules=None, init_cfg=None):
        BaseModule.__init__(self, init_cfg)
        nn.ModuleList.__init__(self, modules)


class ModuleDict(BaseModule, nn.ModuleDict):
    """A dictionary of modules."""

    def __init__(self, modules=None, init_cfg=None):
        BaseModule.__init__(self, init_cfg)
        nn.ModuleDict.__init__(self, modules)


def build_conv_layer(cfg, *args, **kwargs):
    """The convolution of a configuration; None is a Conv2d."""
    options = dict(cfg or {"type": "Conv2d"})
    kinds = {"Conv": nn.Conv2d, "Conv1d": nn.Conv1d, "Conv2d": nn.Conv2d, "Conv3d": nn.Conv3d}
    return kinds[options.pop("type")](*args, **kwargs, **options)


def build_norm_layer(cfg, num_features, postfix=""):
    """The name and the norm of a configuration."""
    kinds = {
        "BN": ("bn", nn.BatchNorm2d), "BN1d": ("bn", nn.BatchNorm1d), "BN2d": ("bn", nn.BatchNorm2d),
        "BN3d": ("bn", nn.BatchNorm3d), "SyncBN": ("bn", nn.SyncBatchNorm), "GN": ("gn", nn.GroupNorm),
        "LN": ("ln", nn.LayerNorm), "IN": ("in", nn.InstanceNorm2d), "IN1d": ("in", nn.InstanceNorm1d),
        "IN2d": ("in", nn.InstanceNorm2d), "IN3d": ("in", nn.InstanceNorm3d),
    }  # fmt: skip
    options = {"eps": 1e-5, **cfg}
    kind, requires_grad = options.pop("type"), options.pop("requires_grad", True)
    name, layer = kinds[kind]
    norm = layer(num_channels=num_features, **options) if kind == "GN" else layer(num_features, **options)
    for parameter in norm.parameters():
        parameter.requires_grad = requires_grad
    return name + str(postfix), norm


def build_activation_layer(cfg):
    """The activation of a configuration."""
    options = dict(cfg)
    kind = options.pop("type")
    kinds = {"Swish": nn.SiLU, "HSwish": nn.Hardswish, "HSigmoid": nn.Hardsigmoid}
    return (kinds[kind] if kind in kinds else getattr(nn, kind))(**options)


def build_padding_layer(cfg, *args, **kwargs):
    """The padding of a configuration."""
    kinds = {"zero": nn.ZeroPad2d, "reflect": nn.ReflectionPad2d, "replicate": nn.ReplicationPad2d}
    options = dict(cfg)
    return kinds[options.pop("type")](*args, **kwargs, **options)


def build_upsample_layer(cfg, *args, **kwargs):
    """The layer of a configuration that makes images larger."""
    options = dict(cfg)
    kind = options.pop("type")
    if kind == "deconv":
        return nn.ConvTranspose2d(*args, **kwargs, **options)
    return nn.Upsample(*args, mode=kind, **kwargs, **options)


def build_dropout(cfg, default_args=None):
    """The dropout of a configuration."""
    options = {**(default_args or {}), **cfg}
    kinds = {"Dropout": nn.Dropout, "Dropout2d": nn.Dropout2d, "DropPath": DropPath}
    kind = options.pop("type")
    rate = options.pop("drop_prob", 0.5 if kind == "Dropout" else 0.0)
    return kinds[kind](rate, **options)


class ConvModule(nn.Module):
    """A convolution, a norm and an activation, in the given order."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias="auto",
        conv_cfg=None, norm_cfg=None, act_cfg={"type": "ReLU"}, inplace=True, with_spectral_norm=False,
        padding_mode="zeros", order=("conv", "norm", "act"),
    ):  # fmt: skip
        super().__init__()
        self.conv_cfg, self.norm_cfg, self.act_cfg = conv_cfg, norm_cfg, act_cfg
        self.inplace, self.order = inplace, order
        self.with_norm, self.with_activation = norm_cfg is not None, act_cfg is not None
        self.with_bias = not self.with_norm if bias == "auto" else bias
        self.with_explicit_padding = padding_mode not in ("zeros", "circular")
        if self.with_explicit_padding:
            self.padding_layer = build_padding_layer({"type": padding_mode}, padding)
        self.conv = build_conv_layer(
            conv_cfg, in_channels, out_channels, kernel_size, stride=stride,
            padding=0 if self.with_explicit_padding else padding, dilation=dilation, groups=groups, bias=self.with_bias,
        )  # fmt: skip
        self.in_channels, self.out_channels = self.conv.in_channels, self.conv.out_channels
        self.kernel_size, self.stride, self.padding = self.conv.kernel_size, self.conv.stride, padding
        self.dilation, self.groups = self.conv.dilation, self.conv.groups
        if with_spectral_norm:
            self.conv = nn.utils.spectral_norm(self.conv)
        self.norm_name = None
        if self.with_norm:
            channels = out_channels if order.index("norm") > order.index("conv") else in_channels
            self.norm_name, norm = build_norm_layer(norm_cfg, channels)
            self.add_module(self.norm_name, norm)
        if self.with_activation:
            options = dict(act_cfg)
            if options["type"] not in ("Tanh", "PReLU", "Sigmoid", "HSigmoid", "Swish", "GELU"):
                options.setdefault("inplace", inplace)
            self.activate = build_activation_layer(options)

    @property
    def norm(self):
        return getattr(self, self.norm_name) if self.norm_name else None

    def forward(self, x, activate=True, norm=True):
        for layer in self.order:
            if layer == "conv":
                if self.with_explicit_padding:
                    x = self.padding_layer(x)
                x = self.conv(x)
            elif layer == "norm" and norm and self.with_norm:
                x = self.norm(x)
            elif layer == "act" and activate and self.with_activation:
                x = self.activate(x)
        return x


class DepthwiseSeparableConvModule(nn.Module):
    """A convolution of each channel, then one of kernel size 1."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, norm_cfg=None,
        act_cfg={"type": "ReLU"}, dw_norm_cfg="default", dw_act_cfg="default", pw_norm_cfg="default",
        pw_act_cfg="default", **kwargs,
    ):  # fmt: skip
        super().__init__()
        dw_norm, pw_norm = (norm_cfg if cfg == "default" else cfg for cfg in (dw_norm_cfg, pw_norm_cfg))
        dw_act, pw_act = (act_cfg if cfg == "default" else cfg for cfg in (dw_act_cfg, pw_act_cfg))
        self.depthwise_conv = ConvModule(
            in_channels, in_channels, kernel_size, stride=stride, padding=padding, dilation=dilation,
            groups=in_channels, norm_cfg=dw_norm, act_cfg=dw_act, **kwargs,
        )  # fmt: skip
        self.pointwise_conv = ConvModule(in_channels, out_channels, 1, norm_cfg=pw_norm, act_cfg=pw_act, **kwargs)

    def forward(self, x):
        return self.pointwise_conv(self.depthwise_conv(x))


class Scale(nn.Module):
    """Multiplies by a parameter."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale, dtype=torch.float32))

    def forward(self, x):
        return x * self.scale


class FFN(BaseModule):
    """Linear layers with activations between them, added to their input."""

    def __init__(
        self, embed_dims=256, feedforward_channels=1024, num_fcs=2, act_cfg={"type": "ReLU", "inplace": True},
        ffn_drop=0.0, dropout_layer=None, add_identity=True, init_cfg=None, **kwargs,
    ):  # fmt: skip
        super().__init__(init_cfg)
        self.embed_dims, self.feedforward_channels, self.num_fcs = embed_dims, feedforward_channels, num_fcs
        self.activate = build_activation_layer(act_cfg)
        layers, in_channels = [], embed_dims
        for _ in range(num_fcs - 1):
            layers.append(Sequential(nn.Linear(in_channels, feedforward_channels), self.activate, nn.Dropout(ffn_drop)))
            in_channels = feedforward_channels
        self.layers = Sequential(*layers, nn.Linear(feedforward_channels, embed_dims), nn.Dropout(ffn_drop))
        self.dropout_layer = build_dropout(dropout_layer) if dropout_layer else nn.Identity()
        self.add_identity = add_identity

    def forward(self, x, identity=None):
        out = self.dropout_layer(self.layers(x))
        if not self.add_identity:
            return out
        return (x if identity is None else identity) + out


def fill_layer(module, fill, bias):
    """Fill the weight of a layer, and set its bias, where it has them."""
    if getattr(module, "weight", None) is not None:
        fill(module.weight)
    if getattr(module, "bias", None) is not None:
        nn.init.constant_(module.bias, bias)


def constant_init(module, val, bias=0):
    fill_layer(module, lambda weight: nn.init.constant_(weight, val), bias)


def normal_init(module, mean=0, std=1, bias=0):
    fill_layer(module, lambda weight: nn.init.normal_(weight, mean, std), bias)


def trunc_normal_init(module, mean=0, std=1, a=-2, b=2, bias=0):
    fill_layer(module, lambda weight: trunc_normal_(weight, mean, std, a, b), bias)


def uniform_init(module, a=0, b=1, bias=0):
    fill_layer(module, lambda weight: nn.init.uniform_(weight, a, b), bias)


def xavier_init(module, gain=1, bias=0, distribution="normal"):
    fill = nn.init.xavier_uniform_ if distribution == "uniform" else nn.init.xavier_normal_
    fill_layer(module, lambda weight: fill(weight, gain=gain), bias)


def kaiming_init(module, a=0, mode="fan_out", nonlinearity="relu", bias=0, distribution="normal"):
    fill = nn.init.kaiming_uniform_ if distribution == "uniform" else nn.init.kaiming_normal_
    fill_layer(module, lambda weight: fill(weight, a=a, mode=mode, nonlinearity=nonlinearity), bias)


def caffe2_xavier_init(module, bias=0):
    kaiming_init(module, a=1, mode="fan_in", nonlinearity="leaky_relu", bias=bias, distribution="uniform")


def bias_init_with_prob(prior_prob):
    """The bias for which a sigmoid gives the probability."""
    return float(-math.log((1 - prior_prob) / prior_prob))


def load_checkpoint(*args, **kwargs):
    raise NotImplementedError("weights are not loaded")


def get_root_logger(*args, **kwargs):
    return logging.getLogger()


def is_seq_of(seq, expected_type, seq_type=(list, tuple)):
    """True for a sequence whose items all have the type."""
    return isinstance(seq, seq_type) and all(isinstance(item, expected_type) for item in seq)


def is_list_of(seq, expected_type):
    """True for a list whose items all have the type."""
    return isinstance(seq, list) and all(isinstance(item, expected_type) for item in seq)


def is_tuple_of(seq, expected_type):
    """True for a tuple whose items all have the type."""
    return isinstance(seq, tuple) and all(isinstance(item, expected_type) for item in seq)


def is_str(x):
    return isinstance(x, str)


def is_norm(layer, exclude=None):
    """True for the norms of torch."""
    if exclude is not None and isinstance(layer, exclude):
        return False
    return isinstance(layer, (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm))


def multi_apply(func, *args, **kwargs):
    """The results of a function for the items of its arguments, as one list for each result."""
    results = map(functools.partial(func, **kwargs) if kwargs else func, *args)
    return tuple(map(list, zip(*results)))


def resize(input, size=None, scale_factor=None, mode="nearest", align_corners=None, warning=True):
    """The images at another size."""
    return interpolate(input, size, scale_factor, mode, align_corners)
