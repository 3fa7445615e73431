"""Functions that move elements: an axis is joined, padded, turned or read by index, seen as (outer, axis, inner)."""

import torch
import triton
import triton.language as tl


def copied(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    copied_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def copied_kernel(x_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    tl.store(out_ptr + offset, x, mask=offset < numel)


def assign(view, value):
    value = value.reshape(value.shape[max(0, value.ndim - view.ndim) :]).expand(view.shape).contiguous()
    sizes = [1] * (6 - view.ndim) + list(view.shape)
    strides = [0] * (6 - view.ndim) + list(view.stride())
    assign_kernel[(triton.cdiv(view.numel(), 1024),)](view, value, view.numel(), *sizes[1:], *strides, BLOCK=1024)


@triton.jit
def assign_kernel(
    view_ptr, value_ptr, numel, n1, n2, n3, n4, n5, stride0, stride1, stride2, stride3, stride4, stride5,
    BLOCK: tl.constexpr,
):  # fmt: skip
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(value_ptr + offset, mask=offset < numel)
    rest = offset // n5
    place = offset % n5 * stride5 + rest % n4 * stride4 + rest // n4 % n3 * stride3
    rest = rest // (n4 * n3)
    place += rest % n2 * stride2 + rest // n2 % n1 * stride1 + rest // (n2 * n1) * stride0
    tl.store(view_ptr + place, value, mask=offset < numel)


def fill(view, value):
    assign(view, torch.full_like(view, value))


def fill_where(x, mask, value):
    assign(x, where(mask, torch.full_like(x, value), x))


def concatenate(tensors, dim):
    shape = list(tensors[0].shape)
    shape[dim] = sum(x.shape[dim] for x in tensors)
    out = torch.empty(shape, device=tensors[0].device, dtype=tensors[0].dtype)
    inner = out.stride(dim)
    start = 0
    for x in tensors:
        n = x.shape[dim]
        if n > 0:
            concatenate_kernel[(triton.cdiv(x.numel(), 1024),)](
                x.contiguous(), out, x.numel(), n * inner, shape[dim] * inner, start * inner, BLOCK=1024
            )
        start += n
    return out


@triton.jit
def concatenate_kernel(x_ptr, out_ptr, numel, row, out_row, start, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    tl.store(out_ptr + offset // row * out_row + start + offset % row, x, mask=offset < numel)


def pad_axis(x, dim, before, after, value):
    x = x.contiguous()
    shape = list(x.shape)
    n = shape[dim]
    shape[dim] = before + n + after
    out = torch.empty(shape, device=x.device, dtype=x.dtype)
    inner = out.stride(dim)
    pad_axis_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, out, out.numel(), n, shape[dim], inner, before, value, BLOCK=1024
    )
    return out


@triton.jit
def pad_axis_kernel(x_ptr, out_ptr, numel, n, out_n, inner, before, value, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    outer, place = offset // (out_n * inner), offset // inner % out_n - before
    inside = (place >= 0) & (place < n) & (offset < numel)
    x = tl.load(x_ptr + (outer * n + place) * inner + offset % inner, mask=inside, other=value)
    tl.store(out_ptr + offset, x, mask=offset < numel)


def flip_axis(x, dim):
    x = x.contiguous()
    out = torch.empty_like(x)
    inner = out.stride(dim)
    flip_axis_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), x.shape[dim], inner, BLOCK=1024)
    return out


@triton.jit
def flip_axis_kernel(x_ptr, out_ptr, numel, n, inner, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    outer, place = offset // (n * inner), n - 1 - offset // inner % n
    x = tl.load(x_ptr + (outer * n + place) * inner + offset % inner, mask=offset < numel)
    tl.store(out_ptr + offset, x, mask=offset < numel)


def index_select(x, dim, index):
    x, index = x.contiguous(), index.contiguous()
    shape = list(x.shape)
    shape[dim] = index.numel()
    out = torch.empty(shape, device=x.device, dtype=x.dtype)
    inner = out.stride(dim)
    index_select_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, index, out, out.numel(), x.shape[dim], shape[dim], inner, BLOCK=1024
    )
    return out


@triton.jit
def index_select_kernel(x_ptr, index_ptr, out_ptr, numel, n, out_n, inner, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index_ptr + offset // inner % out_n, mask=offset < numel, other=0)
    place = tl.where(place < 0, place + n, place)
    x = tl.load(x_ptr + (offset // (out_n * inner) * n + place) * inner + offset % inner, mask=offset < numel)
    tl.store(out_ptr + offset, x, mask=offset < numel)


def embedding(index, weight):
    index = index.contiguous()
    n = weight.shape[1]
    out = torch.empty(index.shape + (n,), device=weight.device, dtype=weight.dtype)
    embedding_kernel[(triton.cdiv(out.numel(), 1024),)](index, weight.contiguous(), out, out.numel(), n, BLOCK=1024)
    return out


@triton.jit
def embedding_kernel(index_ptr, weight_ptr, out_ptr, numel, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index_ptr + offset // n, mask=offset < numel, other=0)
    x = tl.load(weight_ptr + row * n + offset % n, mask=offset < numel)
    tl.store(out_ptr + offset, x, mask=offset < numel)


def gather_axis(x, dim, index):
    x, index = x.contiguous(), index.contiguous()
    out = torch.empty(index.shape, device=x.device, dtype=x.dtype)
    inner = out.stride(dim)
    gather_axis_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, index, out, out.numel(), x.shape[dim], index.shape[dim], inner, BLOCK=1024
    )
    return out


@triton.jit
def gather_axis_kernel(x_ptr, index_ptr, out_ptr, numel, n, out_n, inner, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index_ptr + offset, mask=offset < numel, other=0)
    x = tl.load(x_ptr + (offset // (out_n * inner) * n + place) * inner + offset % inner, mask=offset < numel)
    tl.store(out_ptr + offset, x, mask=offset < numel)


def scatter_axis(x, dim, index, source):
    out, index = copied(x), index.contiguous()
    source = source.contiguous() if torch.is_tensor(source) else torch.full_like(index, source, dtype=x.dtype)
    inner = out.stride(dim)
    scatter_axis_kernel[(triton.cdiv(index.numel(), 1024),)](
        index, source, out, index.numel(), out.shape[dim], index.shape[dim], inner, BLOCK=1024
    )
    return out


@triton.jit
def scatter_axis_kernel(index_ptr, source_ptr, out_ptr, numel, n, index_n, inner, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index_ptr + offset, mask=offset < numel, other=0)
    source = tl.load(source_ptr + offset, mask=offset < numel)
    outer = offset // (index_n * inner)
    tl.store(out_ptr + (outer * n + place) * inner + offset % inner, source, mask=offset < numel)


def one_hot(index, n):
    index = index.contiguous()
    out = torch.empty(index.shape + (n,), device=index.device, dtype=torch.int64)
    one_hot_kernel[(triton.cdiv(out.numel(), 1024),)](index, out, out.numel(), n, BLOCK=1024)
    return out


@triton.jit
def one_hot_kernel(index_ptr, out_ptr, numel, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offset // n, mask=offset < numel)
    tl.store(out_ptr + offset, (index == offset % n).to(tl.int64), mask=offset < numel)


def sorted_axis(x, dim, descending=False, k=None):
    x = x.contiguous()
    shape = list(x.shape)
    n, inner = shape[dim], x.stride(dim)
    shape[dim] = n if k is None else k
    out = torch.empty(shape, device=x.device, dtype=x.dtype)
    place = torch.empty(shape, device=x.device, dtype=torch.int64)
    sorted_axis_kernel[(x.numel() // n, triton.cdiv(n, 64))](x, out, place, n, shape[dim], inner, descending, BLOCK=64)
    return out, place


@triton.jit
def sorted_axis_kernel(x_ptr, out_ptr, place_ptr, n, out_n, inner, descending: tl.constexpr, BLOCK: tl.constexpr):
    outer, rest = tl.program_id(0) // inner, tl.program_id(0) % inner
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = x_ptr + outer * n * inner + rest
    x = tl.load(row + col * inner, mask=col < n)
    rank = tl.zeros((BLOCK,), tl.int32)
    for other in range(0, n):
        y = tl.load(row + other * inner)
        high, low = y if descending else x, x if descending else y
        is_before = (high > low) | ((high != high) & (low == low))
        is_same = (y == x) | ((y != y) & (x != x))
        rank += (is_before | (is_same & (other < col))).to(tl.int32)
    place = (outer * out_n + rank) * inner + rest
    kept = (col < n) & (rank < out_n)
    tl.store(out_ptr + place, x, mask=kept)
    tl.store(place_ptr + place, col.to(tl.int64), mask=kept)


def mesh_grids(axes, indexing):
    places = list(range(len(axes)))
    if indexing == "xy":
        places[:2] = [1, 0]
    sizes = [axes[place].shape[0] for place in places]
    shapes = [[-1 if place == other else 1 for other in range(len(axes))] for place in places]
    return [axes[i].view(shapes[i]).expand(sizes) for i in range(len(axes))]


def sliding_windows(x, dim, size, step):
    shape, stride = list(x.shape), list(x.stride())
    shape[dim] = (shape[dim] - size) // step + 1
    return x.as_strided(shape + [size], stride[:dim] + [stride[dim] * step] + stride[dim + 1 :] + [stride[dim]])


def diagonal_of_ones(rows, cols, device):
    out = torch.empty((rows, cols), device=device)
    diagonal_of_ones_kernel[(triton.cdiv(rows * cols, 1024),)](out, rows * cols, cols, BLOCK=1024)
    return out


@triton.jit
def diagonal_of_ones_kernel(out_ptr, numel, cols, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offset, (offset // cols == offset % cols).to(tl.float32), mask=offset < numel)


def counted(n, start, step, dtype, device):
    out = torch.empty(n, dtype=dtype, device=device)
    counted_kernel[(triton.cdiv(n, 1024),)](out, n, start, step, BLOCK=1024)
    return out


@triton.jit
def counted_kernel(out_ptr, n, start, step, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offset, start + offset * step, mask=offset < n)


def triangle(x, diagonal, lower):
    x = x.contiguous()
    out = torch.empty_like(x)
    triangle_kernel[(triton.cdiv(x.numel(), 1024),)](
        x, out, x.numel(), x.shape[-2], x.shape[-1], diagonal, lower, BLOCK=1024
    )
    return out


@triton.jit
def triangle_kernel(x_ptr, out_ptr, numel, rows, cols, diagonal, lower: tl.constexpr, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    above = offset % cols - offset // cols % rows - diagonal
    kept = tl.where(lower, above <= 0, above >= 0)
    tl.store(out_ptr + offset, tl.where(kept, x, tl.zeros_like(x)), mask=offset < numel)


def causal_scores(scores):
    scores = scores.contiguous()
    out = torch.empty_like(scores)
    causal_scores_kernel[(triton.cdiv(scores.numel(), 1024),)](
        scores, out, scores.numel(), scores.shape[-2], scores.shape[-1], BLOCK=1024
    )
    return out


@triton.jit
def causal_scores_kernel(x_ptr, out_ptr, numel, rows, cols, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < numel)
    is_kept = offset % cols <= offset // cols % rows
    tl.store(out_ptr + offset, tl.where(is_kept, x, float("-inf")), mask=offset < numel)


def masked_scores(scores, mask):
    return where(mask, scores, torch.full_like(scores, float("-inf")))


def grid_sample(x, grid, align, border):
    x, grid = x.contiguous(), grid.contiguous()
    batch, channels, height, width = x.shape
    out_height, out_width = grid.shape[1], grid.shape[2]
    out = torch.empty((batch, channels, out_height, out_width), device=x.device)
    grid_sample_kernel[(triton.cdiv(out.numel(), 1024),)](
        x, grid, out, out.numel(), channels, height, width, out_height * out_width, align, border, BLOCK=1024
    )
    return out


@triton.jit
def grid_sample_kernel(
    x_ptr,
    grid_ptr,
    out_ptr,
    numel,
    channels,
    height,
    width,
    points,
    align: tl.constexpr,
    border: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < numel
    plane, point = offset // points, offset // (channels * points) * points + offset % points
    u = tl.load(grid_ptr + point * 2, mask=mask, other=0.0)
    v = tl.load(grid_ptr + point * 2 + 1, mask=mask, other=0.0)
    col = tl.where(align, (u + 1.0) / 2.0 * (width - 1), ((u + 1.0) * width - 1.0) / 2.0)
    row = tl.where(align, (v + 1.0) / 2.0 * (height - 1), ((v + 1.0) * height - 1.0) / 2.0)
    col = tl.where(border, tl.minimum(tl.maximum(col, 0.0), width - 1.0), col)
    row = tl.where(border, tl.minimum(tl.maximum(row, 0.0), height - 1.0), row)
    left, top = tl.floor(col), tl.floor(row)
    total = tl.zeros((BLOCK,), tl.float32)
    for corner in range(0, 4):
        h, w = top + corner // 2, left + corner % 2
        weight = (1.0 - tl.abs(row - h)) * (1.0 - tl.abs(col - w))
        inside = (h >= 0) & (h < height) & (w >= 0) & (w < width) & mask
        place = (plane * height + h.to(tl.int32)) * width + w.to(tl.int32)
        total += tl.load(x_ptr + place, mask=inside, other=0.0) * weight
    tl.store(out_ptr + offset, total, mask=mask)
