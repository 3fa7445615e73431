"""Pooling and resizing of images. 1-D inputs are images of one row."""

import torch
import triton
import triton.language as tl


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def pooled_size(size, kernel, stride, padding, dilation, ceil_mode):
    steps = size + 2 * padding - dilation * (kernel - 1) - 1
    out = (steps + stride - 1) // stride + 1 if ceil_mode else steps // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:
        out -= 1
    return out


def max_pool1d(x, kernel, stride, padding, dilation, ceil_mode):
    return max_pool2d(x.unsqueeze(-2), (1, kernel), (1, stride), (0, padding), (1, dilation), ceil_mode).squeeze(-2)


def max_pool2d(x, kernel, stride, padding, dilation, ceil_mode):
    kernel, stride, padding, dilation = pair(kernel), pair(stride), pair(padding), pair(dilation)
    x = x.contiguous()
    height, width = x.shape[-2], x.shape[-1]
    out_height = pooled_size(height, kernel[0], stride[0], padding[0], dilation[0], ceil_mode)
    out_width = pooled_size(width, kernel[1], stride[1], padding[1], dilation[1], ceil_mode)
    out = torch.empty(x.shape[:-2] + (out_height, out_width), device=x.device)
    max_pool2d_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, out, out.numel(), height, width, out_height, out_width, *kernel, *stride, *padding, *dilation, BLOCK=1024
    )
    return out


@triton.jit
def max_pool2d_kernel(
    x_ptr, out_ptr, numel, height, width, out_height, out_width, kernel_h, kernel_w, stride_h, stride_w,
    padding_h, padding_w, dilation_h, dilation_w, BLOCK: tl.constexpr,
):  # fmt: skip
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < numel
    plane = offset // (out_height * out_width)
    top = offset // out_width % out_height * stride_h - padding_h
    left = offset % out_width * stride_w - padding_w
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for kh in range(0, kernel_h):
        for kw in range(0, kernel_w):
            h, w = top + kh * dilation_h, left + kw * dilation_w
            inside = (h >= 0) & (h < height) & (w >= 0) & (w < width) & mask
            x = tl.load(x_ptr + (plane * height + h) * width + w, mask=inside, other=float("-inf"))
            best = tl.maximum(best, x, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + offset, best, mask=mask)


def avg_pool1d(x, kernel, stride, padding, ceil_mode, count_include_pad):
    x, kernel, stride = x.unsqueeze(-2), (1, kernel), (1, stride)
    return avg_pool2d(x, kernel, stride, (0, padding), ceil_mode, count_include_pad).squeeze(-2)


def avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad):
    kernel, stride, padding = pair(kernel), pair(stride), pair(padding)
    x = x.contiguous()
    height, width = x.shape[-2], x.shape[-1]
    out_height = pooled_size(height, kernel[0], stride[0], padding[0], 1, ceil_mode)
    out_width = pooled_size(width, kernel[1], stride[1], padding[1], 1, ceil_mode)
    out = torch.empty(x.shape[:-2] + (out_height, out_width), device=x.device)
    edge_h, edge_w = (padding[0], padding[1]) if count_include_pad else (0, 0)
    avg_pool2d_kernel[(triton.cdiv(out.numel(), 1024),)](
        x,
        out,
        out.numel(),
        height,
        width,
        out_height,
        out_width,
        *kernel,
        *stride,
        *padding,
        edge_h,
        edge_w,
        BLOCK=1024,
    )
    return out


@triton.jit
def avg_pool2d_kernel(
    x_ptr, out_ptr, numel, height, width, out_height, out_width, kernel_h, kernel_w, stride_h, stride_w,
    padding_h, padding_w, edge_h, edge_w, BLOCK: tl.constexpr,
):  # fmt: skip
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < numel
    plane = offset // (out_height * out_width)
    top = offset // out_width % out_height * stride_h - padding_h
    left = offset % out_width * stride_w - padding_w
    total = tl.zeros((BLOCK,), tl.float32)
    for kh in range(0, kernel_h):
        for kw in range(0, kernel_w):
            h, w = top + kh, left + kw
            inside = (h >= 0) & (h < height) & (w >= 0) & (w < width) & mask
            total += tl.load(x_ptr + (plane * height + h) * width + w, mask=inside, other=0.0)
    rows = tl.minimum(top + kernel_h, height + edge_h) - tl.maximum(top, -edge_h)
    cols = tl.minimum(left + kernel_w, width + edge_w) - tl.maximum(left, -edge_w)
    tl.store(out_ptr + offset, total / (rows * cols), mask=mask)


def adaptive_avg_pool1d(x, size):
    return adaptive_avg_pool2d(x.unsqueeze(-2), (1, size)).squeeze(-2)


def adaptive_avg_pool2d(x, size):
    x, size = x.contiguous(), pair(size)
    height, width = x.shape[-2], x.shape[-1]
    out = torch.empty(x.shape[:-2] + size, device=x.device)
    adaptive_avg_pool2d_kernel[(out.numel(),)](x, out, height, width, size[0], size[1], BLOCK=1024)
    return out


@triton.jit
def adaptive_avg_pool2d_kernel(x_ptr, out_ptr, height, width, out_height, out_width, BLOCK: tl.constexpr):
    offset = tl.program_id(0)
    plane = offset // (out_height * out_width)
    h, w = offset // out_width % out_height, offset % out_width
    top, bottom = h * height // out_height, ((h + 1) * height + out_height - 1) // out_height
    left, right = w * width // out_width, ((w + 1) * width + out_width - 1) // out_width
    rows, cols = bottom - top, right - left
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows * cols, BLOCK):
        place = start + tl.arange(0, BLOCK)
        row, col = top + place // cols, left + place % cols
        acc += tl.load(x_ptr + (plane * height + row) * width + col, mask=place < rows * cols, other=0.0)
    tl.store(out_ptr + offset, tl.sum(acc) / (rows * cols))


def adaptive_max_pool1d(x, size):
    return adaptive_max_pool2d(x.unsqueeze(-2), (1, size)).squeeze(-2)


def adaptive_max_pool2d(x, size):
    x, size = x.contiguous(), pair(size)
    height, width = x.shape[-2], x.shape[-1]
    out = torch.empty(x.shape[:-2] + size, device=x.device)
    adaptive_max_pool2d_kernel[(out.numel(),)](x, out, height, width, size[0], size[1], BLOCK=1024)
    return out


@triton.jit
def adaptive_max_pool2d_kernel(x_ptr, out_ptr, height, width, out_height, out_width, BLOCK: tl.constexpr):
    offset = tl.program_id(0)
    plane = offset // (out_height * out_width)
    h, w = offset // out_width % out_height, offset % out_width
    top, bottom = h * height // out_height, ((h + 1) * height + out_height - 1) // out_height
    left, right = w * width // out_width, ((w + 1) * width + out_width - 1) // out_width
    rows, cols = bottom - top, right - left
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, rows * cols, BLOCK):
        place = start + tl.arange(0, BLOCK)
        row, col = top + place // cols, left + place % cols
        x = tl.load(x_ptr + (plane * height + row) * width + col, mask=place < rows * cols, other=float("-inf"))
        best = tl.maximum(best, x, propagate_nan=tl.PropagateNan.ALL)
    is_nan = tl.max((best != best).to(tl.int32))
    tl.store(out_ptr + offset, tl.where(is_nan > 0, float("nan"), tl.max(best)))


def upsample_nearest2d(x, size, scale=None):
    x = x.contiguous()
    height, width = x.shape[-2], x.shape[-1]
    if scale is None:
        scale = (height / size[0], width / size[1])
    out = torch.empty(x.shape[:-2] + tuple(size), device=x.device)
    upsample_nearest2d_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, out, out.numel(), height, width, size[0], size[1], scale[0], scale[1], BLOCK=1024
    )
    return out


@triton.jit
def upsample_nearest2d_kernel(
    x_ptr, out_ptr, numel, height, width, out_height, out_width, scale_h, scale_w, BLOCK: tl.constexpr
):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < numel
    plane = offset // (out_height * out_width)
    h = ((offset // out_width % out_height).to(tl.float32) * scale_h).to(tl.int32)
    w = ((offset % out_width).to(tl.float32) * scale_w).to(tl.int32)
    h, w = tl.minimum(h, height - 1), tl.minimum(w, width - 1)
    x = tl.load(x_ptr + (plane * height + h) * width + w, mask=mask)
    tl.store(out_ptr + offset, x, mask=mask)


def upsample_bilinear2d(x, size, align_corners, scale=None):
    x = x.contiguous()
    height, width = x.shape[-2], x.shape[-1]
    if align_corners:
        scale = ((height - 1) / max(size[0] - 1, 1), (width - 1) / max(size[1] - 1, 1))
    elif scale is None:
        scale = (height / size[0], width / size[1])
    out = torch.empty(x.shape[:-2] + tuple(size), device=x.device)
    shift = 0.0 if align_corners else 0.5
    upsample_bilinear2d_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, out, out.numel(), height, width, size[0], size[1], scale[0], scale[1], shift, BLOCK=1024
    )
    return out


@triton.jit
def upsample_bilinear2d_kernel(
    x_ptr, out_ptr, numel, height, width, out_height, out_width, scale_h, scale_w, shift, BLOCK: tl.constexpr
):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < numel
    plane = x_ptr + offset // (out_height * out_width) * height * width
    h = tl.maximum(((offset // out_width % out_height).to(tl.float32) + shift) * scale_h - shift, 0.0)
    w = tl.maximum(((offset % out_width).to(tl.float32) + shift) * scale_w - shift, 0.0)
    top, left = tl.minimum(h.to(tl.int32), height - 1), tl.minimum(w.to(tl.int32), width - 1)
    bottom, right = tl.minimum(top + 1, height - 1), tl.minimum(left + 1, width - 1)
    low, near = h - top.to(tl.float32), w - left.to(tl.float32)
    first = tl.load(plane + top * width + left, mask=mask) * (1.0 - near)
    first += tl.load(plane + top * width + right, mask=mask) * near
    second = tl.load(plane + bottom * width + left, mask=mask) * (1.0 - near)
    second += tl.load(plane + bottom * width + right, mask=mask) * near
    tl.store(out_ptr + offset, first * (1.0 - low) + second * low, mask=mask)


def pixel_shuffle(x, factor):
    batch, _, height, width = x.shape
    x = x.reshape(batch, -1, factor, factor, height, width).permute(0, 1, 4, 2, 5, 3)
    return copied(x).view(batch, -1, height * factor, width * factor)


def pixel_unshuffle(x, factor):
    batch, channels, height, width = x.shape
    x = x.reshape(batch, channels, height // factor, factor, width // factor, factor).permute(0, 1, 3, 5, 2, 4)
    return copied(x).view(batch, -1, height // factor, width // factor)
