"""Products of matrices, and convolutions, which are products with patches of the input."""

import torch
import triton
import triton.language as tl


def matmul(x, y):
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    M, K, N = x.shape[-2], x.shape[-1], y.shape[-1]
    x = x.expand(batch + (M, K)).reshape(-1, M, K)
    y = y.expand(batch + (K, N)).reshape(-1, K, N)
    out = torch.empty(batch + (M, N), device=x.device)
    matmul_kernel[(x.shape[0], triton.cdiv(M, 32), triton.cdiv(N, 32))](
        x, y, out, M, N, K, *x.stride(), *y.stride(), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
    )
    return out


@triton.jit
def matmul_kernel(
    x_ptr, y_ptr, out_ptr, M, N, K, x_batch, x_row, x_col, y_batch, y_row, y_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(0)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x_place = x_ptr + batch * x_batch + m * x_row + k[None, :] * x_col
        y_place = y_ptr + batch * y_batch + k[:, None] * y_row + n * y_col
        x = tl.load(x_place, mask=(m < M) & (k[None, :] < K), other=0.0)
        y = tl.load(y_place, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.store(out_ptr + (batch * M + m) * N + n, acc, mask=(m < M) & (n < N))


def linear(x, weight, bias):
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    M, K, N = rows.shape[0], rows.shape[1], weight.shape[0]
    if bias is None:
        bias = torch.zeros(N, device=x.device)
    out = torch.empty(x.shape[:-1] + (N,), device=x.device)
    linear_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        rows, weight.contiguous(), bias, out, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
    )
    return out


@triton.jit
def linear_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        weight = tl.load(weight_ptr + n * K + k[:, None], mask=(k[:, None] < K) & (n < N), other=0.0)
        acc += tl.dot(x, weight, input_precision="ieee")
    bias = tl.load(bias_ptr + n, mask=n < N)
    tl.store(out_ptr + m * N + n, acc + bias, mask=(m < M) & (n < N))


def conv1d(x, weight, bias, stride, padding, dilation, groups):
    x, weight = x.unsqueeze(2), weight.unsqueeze(2)
    return conv2d(x, weight, bias, (1, *stride), (0, *padding), (1, *dilation), groups).squeeze(2)


def conv2d(x, weight, bias, stride, padding, dilation, groups):
    x, weight = x.contiguous(), weight.contiguous()
    batch, channels, height, width = x.shape
    out_channels, _, kernel_h, kernel_w = weight.shape
    out_height = (height + 2 * padding[0] - dilation[0] * (kernel_h - 1) - 1) // stride[0] + 1
    out_width = (width + 2 * padding[1] - dilation[1] * (kernel_w - 1) - 1) // stride[1] + 1
    if bias is None:
        bias = torch.zeros(out_channels, device=x.device)
    M, N = out_channels // groups, out_height * out_width
    out = torch.empty((batch, out_channels, out_height, out_width), device=x.device)
    conv2d_kernel[(batch * groups, triton.cdiv(M, 32), triton.cdiv(N, 32))](
        x, weight, bias, out, groups, channels // groups, height, width, M, N, out_width, kernel_h, kernel_w,
        *stride, *padding, *dilation, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32,
    )  # fmt: skip
    return out


@triton.jit
def conv2d_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, groups, channels, height, width, M, N, out_width, kernel_h, kernel_w,
    stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    channel = plane % groups * M + m
    K = channels * kernel_h * kernel_w
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        weight = tl.load(weight_ptr + channel * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        k = k[:, None]
        h = n // out_width * stride_h - padding_h + k // kernel_w % kernel_h * dilation_h
        w = n % out_width * stride_w - padding_w + k % kernel_w * dilation_w
        inside = (h >= 0) & (h < height) & (w >= 0) & (w < width) & (k < K) & (n < N)
        place = ((plane * channels + k // (kernel_h * kernel_w)) * height + h) * width + w
        acc += tl.dot(weight, tl.load(x_ptr + place, mask=inside, other=0.0), input_precision="ieee")
    bias = tl.load(bias_ptr + channel, mask=m < M)
    tl.store(out_ptr + (plane * M + m) * N + n, acc + bias, mask=(m < M) & (n < N))


def conv3d(x, weight, bias, stride, padding, dilation, groups):
    x, weight = x.contiguous(), weight.contiguous()
    batch, channels, depth, height, width = x.shape
    out_channels, _, kernel_d, kernel_h, kernel_w = weight.shape
    out_depth = (depth + 2 * padding[0] - dilation[0] * (kernel_d - 1) - 1) // stride[0] + 1
    out_height = (height + 2 * padding[1] - dilation[1] * (kernel_h - 1) - 1) // stride[1] + 1
    out_width = (width + 2 * padding[2] - dilation[2] * (kernel_w - 1) - 1) // stride[2] + 1
    if bias is None:
        bias = torch.zeros(out_channels, device=x.device)
    M, N = out_channels // groups, out_depth * out_height * out_width
    out = torch.empty((batch, out_channels, out_depth, out_height, out_width), device=x.device)
    conv3d_kernel[(batch * groups, triton.cdiv(M, 32), triton.cdiv(N, 32))](
        x, weight, bias, out, groups, channels // groups, depth, height, width, M, N, out_height, out_width,
        kernel_d, kernel_h, kernel_w, *stride, *padding, *dilation, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32,
    )  # fmt: skip
    return out


@triton.jit
def conv3d_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, groups, channels, depth, height, width, M, N, out_height, out_width,
    kernel_d, kernel_h, kernel_w, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w,
    dilation_d, dilation_h, dilation_w, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    channel = plane % groups * M + m
    K = channels * kernel_d * kernel_h * kernel_w
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        weight = tl.load(weight_ptr + channel * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        k = k[:, None]
        kd = k // (kernel_h * kernel_w) % kernel_d
        d = n // (out_height * out_width) * stride_d - padding_d + kd * dilation_d
        h = n // out_width % out_height * stride_h - padding_h + k // kernel_w % kernel_h * dilation_h
        w = n % out_width * stride_w - padding_w + k % kernel_w * dilation_w
        inside = (d >= 0) & (d < depth) & (h >= 0) & (h < height) & (w >= 0) & (w < width) & (k < K) & (n < N)
        c = plane * channels + k // (kernel_d * kernel_h * kernel_w)
        place = ((c * depth + d) * height + h) * width + w
        acc += tl.dot(weight, tl.load(x_ptr + place, mask=inside, other=0.0), input_precision="ieee")
    bias = tl.load(bias_ptr + channel, mask=m < M)
    tl.store(out_ptr + (plane * M + m) * N + n, acc + bias, mask=(m < M) & (n < N))


def conv_transpose1d(x, weight, bias, stride, padding, output_padding, dilation, groups):
    x, weight = x.unsqueeze(2), weight.unsqueeze(2)
    strides, paddings, dilations = (1, *stride), (0, *padding), (1, *dilation)
    return conv_transpose2d(x, weight, bias, strides, paddings, (0, *output_padding), dilations, groups).squeeze(2)


def conv_transpose2d(x, weight, bias, stride, padding, output_padding, dilation, groups):
    x, weight = x.contiguous(), weight.contiguous()
    batch, channels, height, width = x.shape
    _, M, kernel_h, kernel_w = weight.shape
    out_height = (height - 1) * stride[0] - 2 * padding[0] + dilation[0] * (kernel_h - 1) + output_padding[0] + 1
    out_width = (width - 1) * stride[1] - 2 * padding[1] + dilation[1] * (kernel_w - 1) + output_padding[1] + 1
    if bias is None:
        bias = torch.zeros(M * groups, device=x.device)
    N = out_height * out_width
    out = torch.empty((batch, M * groups, out_height, out_width), device=x.device)
    conv_transpose2d_kernel[(batch * groups, triton.cdiv(M, 32), triton.cdiv(N, 32))](
        x, weight, bias, out, groups, channels // groups, height, width, M, N, out_width, kernel_h, kernel_w,
        *stride, *padding, *dilation, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32,
    )  # fmt: skip
    return out


@triton.jit
def conv_transpose2d_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, groups, channels, height, width, M, N, out_width, kernel_h, kernel_w,
    stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    group = plane % groups
    area = kernel_h * kernel_w
    K = channels * area
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        c = group * channels + k[None, :] // area
        weight_place = (c * M + m) * area + k[None, :] % area
        weight = tl.load(weight_ptr + weight_place, mask=(m < M) & (k[None, :] < K), other=0.0)
        k = k[:, None]
        h = n // out_width + padding_h - k // kernel_w % kernel_h * dilation_h
        w = n % out_width + padding_w - k % kernel_w * dilation_w
        inside = (h >= 0) & (h % stride_h == 0) & (h // stride_h < height) & (k < K) & (n < N)
        inside &= (w >= 0) & (w % stride_w == 0) & (w // stride_w < width)
        place = ((plane * channels + k // area) * height + h // stride_h) * width + w // stride_w
        acc += tl.dot(weight, tl.load(x_ptr + place, mask=inside, other=0.0), input_precision="ieee")
    bias = tl.load(bias_ptr + group * M + m, mask=m < M)
    tl.store(out_ptr + (plane * M + m) * N + n, acc + bias, mask=(m < M) & (n < N))
