"""Pooling, resizing and padding of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelquarry.transforms.slice.traced_graph import Node

from .table import NotWritten, on, plain, repeated, setting

if TYPE_CHECKING:
    from ..write_forward import Writer


@on("max_pool1d", "max_pool2d", "layer:MaxPool1d", "layer:MaxPool2d")
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


@on("avg_pool1d", "avg_pool2d", "layer:AvgPool1d", "layer:AvgPool2d")
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


@on(*(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in "12"),
     *(f"layer:Adaptive{kind}Pool{n}d" for kind in ("Avg", "Max") for n in "12"))  # fmt: skip
def _adaptive_pool(w: Writer, node: Node) -> str:
    n, kind = int(node.operator[-2]), "max" if "max" in node.operator.lower() else "avg"
    given = w.given(node)
    if node.kind == "layer":
        sizes: list[Any] = [{"value": size} for size in repeated(plain(node.arguments["output_size"]), n)]
    else:
        found = given["output_size"]
        sizes = found.get("tuple") or found.get("list") or [found]
        sizes = sizes * n if len(sizes) == 1 else sizes
    x = w.tensor(given["x"])
    texts = [f"{x}.shape[{i - n}]" if size == {"value": None} else w.text(size) for i, size in enumerate(sizes)]
    if w.constant(given.get("return_indices"), False):
        raise NotWritten("indices of a pool")
    return w.call(f"adaptive_{kind}_pool{n}d", f"{x}, {texts[0] if n == 1 else '(' + ', '.join(texts) + ')'}")


@on("interpolate", "layer:Upsample", "layer:UpsamplingNearest2d", "layer:UpsamplingBilinear2d")
def _interpolate(w: Writer, node: Node) -> str:
    given = w.given(node)
    x, n = w.tensor(given["x"]), w.rank(given["x"]) - 2
    mode = {"UpsamplingNearest2d": "nearest", "UpsamplingBilinear2d": "bilinear"}.get(node.name) or setting(
        w, node, "mode", "nearest"
    )
    align = node.name == "UpsamplingBilinear2d" or bool(setting(w, node, "align_corners", False))
    factor = setting(w, node, "scale_factor", None)
    again = node.kind == "layer" and node.arguments.get("recompute_scale_factor")
    if again or w.constant(given.get("recompute_scale_factor"), False) or w.constant(given.get("antialias"), False):
        raise NotWritten("a scale that is computed again")
    if (mode, n) not in (("nearest", 1), ("nearest", 2), ("bilinear", 2)):
        raise NotWritten(f"resizing in mode {mode}")
    if factor is not None:
        factors = repeated(factor, n)
        whole = [int(f) if f == int(f) else None for f in factors]
        sizes = [
            f"{x}.shape[{i - n}] * {f}" if f else f"int({x}.shape[{i - n}] * {g})"
            for i, (f, g) in enumerate(zip(whole, factors, strict=True))
        ]
        scales = [str(1.0 / f) for f in factors]
    else:
        if node.kind == "layer":
            sizes = [str(size) for size in repeated(plain(node.arguments["size"]), n)]
        else:
            found = given["size"]
            trees = found.get("tuple") or found.get("list") or [found] * n
            sizes = [w.text(tree) for tree in trees]
        scales = [
            f"{x}.shape[{i - n}] / ({size})" if " " in size else f"{x}.shape[{i - n}] / {size}"
            for i, size in enumerate(sizes)
        ]
    if mode == "nearest":
        if n == 1:
            return w.call("upsample_nearest1d", f"{x}, {sizes[0]}, {scales[0]}")
        return w.call("upsample_nearest2d", f"{x}, ({', '.join(sizes)}), ({', '.join(scales)})")
    if align:
        scales = [f"({x}.shape[{i - n}] - 1) / max({size} - 1, 1)" for i, size in enumerate(sizes)]
    shift = "0.0" if align else "0.5"
    return w.call("upsample_bilinear2d", f"{x}, ({', '.join(sizes)}), ({', '.join(scales)}), {shift}")


@on("pad", *(f"layer:{kind}Pad{n}d" for kind in ("Zero", "Constant", "Reflection", "Replication") for n in "123"))
def _pad(w: Writer, node: Node) -> str:
    given = w.given(node)
    if node.kind == "layer":
        n = int(node.name[-2])
        pads = repeated(plain(node.arguments["padding"]), 2 * n)
        kinds = {"Zero": "constant", "Constant": "constant", "Reflection": "reflect", "Replication": "replicate"}
        mode, value = kinds[node.name[:-5]], node.arguments.get("value", 0.0)
    else:
        pads, mode = w.constant(given["pad"]), w.constant(given.get("mode"), "constant")
        value = w.constant(given.get("value"), 0.0)
    x = w.tensor(given["x"], "" if mode == "constant" else "float32")
    for i in range(len(pads) // 2):
        before, after = pads[2 * i], pads[2 * i + 1]
        if before == after == 0:
            continue
        if before < 0 or after < 0:
            raise NotWritten("a negative padding")
        extra = f", {w.number(value)}" if mode == "constant" else ""
        x = w.call(f"{mode}_pad_axis".replace("constant_", ""), f"{x}, {-1 - i}, {before}, {after}{extra}")
    return x


@on("pixel_shuffle", "layer:PixelShuffle")
def _pixel_shuffle(w: Writer, node: Node) -> str:
    given = w.given(node)
    r = setting(w, node, "upscale_factor" if node.kind == "layer" else "factor", None)
    x, shapes = w.tensor(given["x"]), w.node(given["x"]).shapes
    if len(shapes[0]) != 4 or len({shape[1] for shape in shapes}) != 1:
        raise NotWritten("pixel_shuffle of other ranks")
    c = shapes[0][1] // (r * r)
    sizes = f"({x}.shape[0], {c}, {x}.shape[2] * {r}, {x}.shape[3] * {r})"
    view = f"{x}.reshape({x}.shape[0], {c}, {r}, {r}, {x}.shape[2], {x}.shape[3])"
    return w.call("copied", f"{view}.permute(0, 1, 4, 2, 5, 3)") + f".view{sizes}"


@on("pixel_unshuffle", "layer:PixelUnshuffle")
def _pixel_unshuffle(w: Writer, node: Node) -> str:
    given = w.given(node)
    r = setting(w, node, "downscale_factor" if node.kind == "layer" else "factor", None)
    x, shapes = w.tensor(given["x"]), w.node(given["x"]).shapes
    if len(shapes[0]) != 4:
        raise NotWritten("pixel_unshuffle of other ranks")
    h, v = f"{x}.shape[2] // {r}", f"{x}.shape[3] // {r}"
    view = f"{x}.reshape({x}.shape[0], {x}.shape[1], {h}, {r}, {v}, {r})"
    return (
        w.call("copied", f"{view}.permute(0, 1, 3, 5, 2, 4)") + f".view({x}.shape[0], {x}.shape[1] * {r * r}, {h}, {v})"
    )


@on("grid_sample")
def _grid_sample(w: Writer, node: Node) -> str:
    given = w.given(node)
    mode, padding = w.constant(given.get("mode"), "bilinear"), w.constant(given.get("padding_mode"), "zeros")
    if mode != "bilinear" or padding not in ("zeros", "border") or w.rank(given["x"]) != 4:
        raise NotWritten("another mode of grid_sample")
    align = bool(w.constant(given.get("align_corners"), False))
    return w.call("grid_sample", f"{w.tensor(given['x'])}, {w.tensor(given['grid'])}, {align}, {padding == 'border'}")
