"""Layers of PyTorch as classes of the same state whose `forward` calls the library."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

from .calls import NotWritten
from .write_call import OWN, parsed

Arguments = Mapping[str, Any]  # of a layer's constructor, those that are not defaults
USUAL: Arguments = {"dim": -1}  # an argument that most give
_CONV = "conv{}d({}, self.weight, self.bias, self.stride, {}, self.dilation, self.groups)"
_TRANSPOSED = "x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.dilation, self.groups"
_NORM = "self.weight, self.bias, self.eps"
_BATCH_NORM = f"batch_norm(x, self.running_mean, self.running_var, {_NORM})"


def _unless(expression: str, **refused: Any) -> Callable[[Arguments], str]:
    """An expression for layers whose arguments have these values."""

    def of(arguments: Arguments) -> str:
        for name, value in refused.items():
            if arguments.get(name, value) != value:
                raise NotWritten(f"{name}={arguments[name]!r} of a layer")
        return expression

    return of


def _of_axis(expression: str) -> Callable[[Arguments], str]:
    def of(arguments: Arguments) -> str:
        if arguments.get("dim") is None:
            raise NotWritten("a layer without its axis")
        return expression

    return of


def _eps(arguments: Arguments) -> str:
    return "self.eps" if arguments.get("eps") else "1.1920928955078125e-07"  # torch.finfo(torch.float32).eps


def _conv(n: int) -> Callable[[Arguments], str]:
    def of(arguments: Arguments) -> str:
        padding, mode = arguments.get("padding", 0), arguments.get("padding_mode", "zeros")
        sizes, dilation = arguments.get("kernel_size"), arguments.get("dilation", 1)
        if padding == "same" and mode == "zeros" and isinstance(sizes, int) and isinstance(dilation, int):
            if dilation * (sizes - 1) % 2:
                raise NotWritten("a padding that differs between the sides")
            return _CONV.format(n, "x", (dilation * (sizes - 1) // 2,) * n)
        if isinstance(padding, str) and padding != "valid":
            raise NotWritten(f"padding={padding!r} of a layer")
        if mode == "zeros":
            return _CONV.format(n, "x", (0,) * n if padding == "valid" else "self.padding")
        x = "x"
        for axis in range(n):
            x = f"{mode}_pad_axis({x}, {axis - n}, self.padding[{axis}], self.padding[{axis}])"
        return _CONV.format(n, x, (0,) * n)

    return of


def _loss(each: str) -> Callable[[Arguments], str]:
    def of(arguments: Arguments) -> str:
        if arguments.keys() - {"reduction"}:
            raise NotWritten("a loss with weights")
        reduction = arguments.get("reduction", "mean")
        return each if reduction == "none" else f"reduce_{reduction}({each}, tuple(range(x.ndim)))"

    return of


def _padded(function: str, n: int, extra: str = "") -> str:
    x = "x"
    for axis in range(n):
        before, after = (f"self.padding[{2 * axis + side}]" for side in (0, 1))
        x = f"{function}({x}, {-1 - axis}, {before}, {after}{extra})"
    return x


def _upsampled(arguments: Arguments) -> str:
    mode, factor = arguments.get("mode", "nearest"), arguments.get("scale_factor")
    if mode not in ("nearest", "bilinear") or arguments.get("recompute_scale_factor"):
        raise NotWritten(f"resizing in mode {mode}")
    if factor is None:
        size = "pair(self.size)"
    elif isinstance(factor, list | tuple) or factor != int(factor):
        raise NotWritten(f"resizing by {factor}")
    else:
        size = "(x.shape[-2] * int(self.scale_factor), x.shape[-1] * int(self.scale_factor))"
    if mode == "nearest":
        return f"upsample_nearest2d(x, {size})"
    return f"upsample_bilinear2d(x, {size}, {bool(arguments.get('align_corners'))})"


def _multi_head(arguments: Arguments) -> str:
    width = arguments.get("embed_dim")
    if any(arguments.get(name, width) != width for name in ("kdim", "vdim")):
        raise NotWritten("attention to another width")
    return _unless(_MULTI_HEAD, add_bias_kv=False, add_zero_attn=False)(arguments)


_MULTI_HEAD = (
    "multi_head_attention(x, key, value, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, "
    "self.out_proj.bias, self.num_heads, self.batch_first)"
)
_OF_ELEMENTS = "ReLU Sigmoid Tanh SiLU Mish Hardswish Hardsigmoid SELU Softsign LogSigmoid Tanhshrink".split()
# Layer -> the result of its `forward`, or a function that gives it for arguments of the constructor.
LAYERS: dict[str, str | Callable[[Arguments], str]] = {
    **{name: f"{name.lower()}(x)" for name in _OF_ELEMENTS},
    "ReLU6": "clamp(x, 0.0, 6.0)",
    "GELU": lambda given: f"{'gelu' if given.get('approximate', 'none') == 'none' else 'gelu_tanh'}(x)",
    "LeakyReLU": "leaky_relu(x, self.negative_slope)",
    "ELU": "elu(x, self.alpha)",
    "CELU": "celu(x, self.alpha)",
    "Hardtanh": "clamp(x, self.min_val, self.max_val)",
    "Softplus": "softplus(x, self.beta, self.threshold)",
    "Softshrink": "softshrink(x, self.lambd)",
    "Hardshrink": "hardshrink(x, self.lambd)",
    "Threshold": "threshold(x, self.threshold, self.value)",
    "PReLU": "prelu(x, self.weight.view(-1, *[1] * (x.ndim - 2)))",
    "GLU": "mul(x.chunk(2, self.dim)[0], sigmoid(x.chunk(2, self.dim)[1]))",
    "Softmax": _of_axis("softmax(x, self.dim)"),
    "LogSoftmax": _of_axis("log_softmax(x, self.dim)"),
    "Softmax2d": "softmax(x, -3)",
    "Linear": "linear(x, self.weight, self.bias)",
    **{f"Conv{n}d": _conv(n) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": f"conv_transpose{n}d({_TRANSPOSED})" for n in (1, 2)},
    **{f"BatchNorm{n}d": _unless(_BATCH_NORM, track_running_stats=True) for n in (1, 2, 3)},
    **{
        f"InstanceNorm{n}d": _unless(f"group_norm(x, x.shape[1], {_NORM})", track_running_stats=False)
        for n in (1, 2, 3)
    },
    "LayerNorm": f"layer_norm(x, self.normalized_shape, {_NORM})",
    "RMSNorm": lambda given: f"rms_norm(x, self.normalized_shape, self.weight, {_eps(given)})",
    "GroupNorm": f"group_norm(x, self.num_groups, {_NORM})",
    **{
        f"MaxPool{n}d": _unless(
            f"max_pool{n}d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)",
            return_indices=False,
        )
        for n in (1, 2)
    },
    "AvgPool1d": "avg_pool1d(x, self.kernel_size[0], self.stride[0], self.padding[0], self.ceil_mode, "
    "self.count_include_pad)",
    "AvgPool2d": _unless(
        "avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)",
        divisor_override=None,
    ),
    **{
        f"Adaptive{kind}Pool{n}d": f"adaptive_{kind.lower()}_pool{n}d(x, self.output_size)"
        for kind in ("Avg", "Max")
        for n in (1, 2)
    },
    "Upsample": _upsampled,
    "UpsamplingNearest2d": lambda given: _upsampled({**given, "mode": "nearest"}),
    "UpsamplingBilinear2d": lambda given: _upsampled({**given, "mode": "bilinear", "align_corners": True}),
    "PixelShuffle": "pixel_shuffle(x, self.upscale_factor)",
    "PixelUnshuffle": "pixel_unshuffle(x, self.downscale_factor)",
    **{f"ZeroPad{n}d": _padded("pad_axis", n, ", 0.0") for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": _padded("pad_axis", n, ", self.value") for n in (1, 2, 3)},
    **{f"ReflectionPad{n}d": _padded("reflect_pad_axis", n) for n in (1, 2, 3)},
    **{f"ReplicationPad{n}d": _padded("replicate_pad_axis", n) for n in (1, 2, 3)},
    "Embedding": _unless("embedding(x, self.weight)", max_norm=None),
    "MultiheadAttention": _multi_head,
    "MSELoss": _loss("square(sub(x, target))"),
    "L1Loss": _loss("absolute(sub(x, target))"),
    "BCEWithLogitsLoss": _loss("sub(softplus(x, 1.0, 20.0), mul(x, target))"),
    "CosineSimilarity": "reduce_sum(mul(normalize(x, self.dim, self.eps), normalize(y, self.dim, self.eps)), self.dim)",
}
_PARAMETERS = {
    "MultiheadAttention": "x, key, value, key_padding_mask=None, need_weights=True, attn_mask=None",
    **dict.fromkeys(("MSELoss", "L1Loss", "BCEWithLogitsLoss"), "x, target"),
    "CosineSimilarity": "x, y",
}


def layer_result(name: str, arguments: Arguments) -> str:
    """The result of a layer's `forward`. Raises: NotWritten: the library lacks the layer, or these arguments."""
    if name not in LAYERS:
        raise NotWritten(f"a layer {name}")
    found = LAYERS[name]
    return found if isinstance(found, str) else found(arguments)


def function_of(layer: str) -> str:
    """The function of a layer whose result is the same for all usual arguments; "" for other layers."""
    found = LAYERS.get(layer)
    if layer in _PARAMETERS or not (isinstance(found, str) or layer.startswith("Conv")):
        return ""
    return layer_result(layer, USUAL).partition("(")[0]


def result_of(layer: str, x: ast.expr, functions: dict[str, None]) -> ast.expr:
    """The result of a layer's `forward` for an operand; adds to the functions that it calls.

    Raises:
        NotWritten: as `layer_result`, or the operand is needed twice.
    """
    tree = parsed(layer_result(layer, USUAL))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if not isinstance(x, ast.Name) and sum(name.id == "x" for name in names) > 1:
        raise NotWritten("an operand that is needed twice")
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    for name in names:
        if name.id in called and not hasattr(builtins, name.id):
            functions.setdefault(name.id)
            name.id = OWN + name.id
    return _Replaced(x).visit(tree)


class _Replaced(ast.NodeTransformer):
    def __init__(self, x: ast.expr) -> None:
        self._x = x

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._x if node.id == "x" else node


def class_name(layer: str) -> str:
    return f"Triton{layer}"


def layer_text(name: str, result: str) -> str:
    """The class of a layer with this result."""
    return f"""\
class {class_name(name)}(nn.{name}):
    def forward(self, {_PARAMETERS.get(name, "x")}):
        return {result}
"""
