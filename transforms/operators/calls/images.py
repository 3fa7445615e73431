"""Pooling, resizing and padding of images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelquarry.transforms.slice.traced_graph import Node

from .table import NotWritten, on, repeated, setting

if TYPE_CHECKING:
    from ..write_call import Writer


@on("max_pool1d", "max_pool2d")
def _max_pool(w: Writer, node: Node) -> str:
    n = int(node.operator[-2])
    kernel = repeated(setting(w, node, "kernel_size", None), n)
    stride = setting(w, node, "stride", None)
    stride = kernel if stride in (None, ()) else repeated(stride, n)
    padding, dilation = (
        repeated(setting(w, node, name, default), n) for name, default in (("padding", 0), ("dilation", 1))
    )
    if setting(w, node, "return_indices", False):
        raise NotWritten("indices of a pool")
    settings = [one[0] if n == 1 else one for one in (kernel, stride, padding, dilation)]
    ceil = setting(w, node, "ceil_mode", False)
    return w.call(f"max_pool{n}d", ", ".join(map(str, [w.tensor(w.given(node)["x"]), *settings, ceil])))


@on("avg_pool1d", "avg_pool2d")
def _avg_pool(w: Writer, node: Node) -> str:
    n = int(node.operator[-2])
    kernel = repeated(setting(w, node, "kernel_size", None), n)
    stride = setting(w, node, "stride", None)
    stride = kernel if stride in (None, ()) else repeated(stride, n)
    padding = repeated(setting(w, node, "padding", 0), n)
    if setting(w, node, "divisor_override", None) is not None:
        raise NotWritten("a divisor of a pool")
    settings = [one[0] if n == 1 else one for one in (kernel, stride, padding)]
    flags = [setting(w, node, "ceil_mode", False), setting(w, node, "count_include_pad", True)]
    return w.call(f"avg_pool{n}d", ", ".join(map(str, [w.tensor(w.given(node)["x"]), *settings, *flags])))


@on(*(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in "12"))
def _adaptive_pool(w: Writer, node: Node) -> str:
    given = w.given(node)
    size, x = given["output_size"], w.tensor(given["x"])
    if w.constant(given.get("return_indices"), False):
        raise NotWritten("indices of a pool")
    value = w.constant(size)
    if isinstance(value, tuple) and None in value:
        sizes = [f"{x}.shape[{i - len(value)}]" if each is None else str(each) for i, each in enumerate(value)]
        value = f"({', '.join(sizes)})"
    elif node.operator[-2] == "1" and isinstance(value, tuple):
        value = value[0]
    return w.call(node.operator, f"{x}, {size.get('text') or value}")


@on("interpolate")
def _interpolate(w: Writer, node: Node) -> str:
    given = w.given(node)
    x, n = w.tensor(given["x"]), w.rank(given["x"]) - 2
    mode, factor = setting(w, node, "mode", "nearest"), setting(w, node, "scale_factor", None)
    if w.constant(given.get("recompute_scale_factor"), False) or w.constant(given.get("antialias"), False):
        raise NotWritten("a scale that is computed again")
    if (mode, n) not in (("nearest", 1), ("nearest", 2), ("bilinear", 2)):
        raise NotWritten(f"resizing in mode {mode}")
    align, scale = bool(setting(w, node, "align_corners", False)), ""
    if factor is not None:
        factors = repeated(factor, n)
        sizes = [_scaled(f"{x}.shape[{i - n}]", f) for i, f in enumerate(factors)]
        if any(f != int(f) for f in factors):
            scale = ", (" + ", ".join(f"1.0 / {f}" for f in factors) + ")"
        size = f"({', '.join(sizes)})"
    else:
        value = w.constant(given["size"])
        size = given["size"].get("text") or str(repeated(value, n))
    if n == 1:
        return w.call("upsample_nearest2d", f"{x}.unsqueeze(2), (1, {size[1:-1].rstrip(',')})") + ".squeeze(2)"
    if mode == "nearest":
        return w.call("upsample_nearest2d", f"{x}, {size}{scale}")
    return w.call("upsample_bilinear2d", f"{x}, {size}, {align}{scale}")


def _scaled(size: str, factor: float) -> str:
    """A size times a factor, which may be written as a float or as the module's expression."""
    return f"{size} * {factor}" if str(factor).isdigit() else f"int({size} * {factor})"


@on("pad")
def _pad(w: Writer, node: Node) -> str:
    given = w.given(node)
    pads, mode = w.constant(given["pad"]), w.constant(given.get("mode"), "constant")
    value = w.constant(given.get("value"), 0.0)
    x = w.tensor(given["x"], "" if mode == "constant" else "float32")
    for i in range(len(pads) // 2):
        before, after = pads[2 * i], pads[2 * i + 1]
        if str(before) == str(after) == "0":  # the module says so; it does not compute them
            continue
        if mode != "constant" and (before < 0 or after < 0):
            raise NotWritten("a negative padding")
        extra = f", {w.number(value)}" if mode == "constant" else ""
        x = w.call(f"{mode}_pad_axis".replace("constant_", ""), f"{x}, {-1 - i}, {before}, {after}{extra}")
    return x


@on("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(w: Writer, node: Node) -> str:
    given = w.given(node)
    if w.rank(given["x"]) != 4:
        raise NotWritten(f"{node.operator} of other ranks")
    return w.call(node.operator, f"{w.tensor(given['x'])}, {w.constant(given['factor'])}")


@on("grid_sample")
def _grid_sample(w: Writer, node: Node) -> str:
    given = w.given(node)
    mode, padding = w.constant(given.get("mode"), "bilinear"), w.constant(given.get("padding_mode"), "zeros")
    if mode != "bilinear" or padding not in ("zeros", "border") or w.rank(given["x"]) != 4:
        raise NotWritten("another mode of grid_sample")
    align = bool(w.constant(given.get("align_corners"), False))
    return w.call("grid_sample", f"{w.tensor(given['x'])}, {w.tensor(given['grid'])}, {align}, {padding == 'border'}")
