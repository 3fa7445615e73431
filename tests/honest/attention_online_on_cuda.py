# /// case
# reference = "attention"
# kernels = ["attention"]
# shows = "online softmax in base 2, with statistics allocated on \"cuda\""
# ///

"""Online softmax in base 2 with a constant of the file, statistics in tensors made on the GPU by name."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend(acc, largest, total, q, k_ptr, v_ptr, keys, scale, BLOCK_N: tl.constexpr, DIM: tl.constexpr):
    depth = tl.arange(0, DIM)
    for start in range(0, keys, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + column[None, :] * DIM + depth[:, None], mask=column[None, :] < keys, other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * (scale * LOG2_E)
        score = tl.where(column[None, :] < keys, score, float("-inf"))
        above = tl.maximum(largest, tl.max(score, 1))
        power = tl.math.exp2(score - above[:, None])
        rescale = tl.math.exp2(largest - above)
        total = total * rescale + tl.sum(power, 1)
        v = tl.load(v_ptr + column[:, None] * DIM + depth[None, :], mask=column[:, None] < keys, other=0.0)
        acc = acc * rescale[:, None] + tl.dot(power, v, input_precision="ieee")
        largest = above
    return acc, largest, total


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    stats_ptr,
    queries,
    keys,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DIM: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, DIM)
    at = head * queries * DIM + row[:, None] * DIM + depth[None, :]
    q = tl.load(q_ptr + at, mask=row[:, None] < queries, other=0.0)
    acc = tl.zeros([BLOCK_M, DIM], dtype=tl.float32)
    largest = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    offset = head * keys * DIM
    acc, largest, total = attend(acc, largest, total, q, k_ptr + offset, v_ptr + offset, keys, scale, BLOCK_N, DIM)
    tl.store(stats_ptr + head * queries + row, largest + tl.math.log2(total), mask=row < queries)
    tl.store(out_ptr + at, acc / total[:, None], mask=row[:, None] < queries)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, queries, dim = q.shape
        keys = k.shape[2]
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        stats = torch.empty((batch * heads, queries), device="cuda:0", dtype=torch.float32)
        grid = (triton.cdiv(queries, 16), batch * heads, 1)
        attention[grid](q, k, v, out, stats, queries, keys, 1.0 / dim**0.5, BLOCK_M=16, BLOCK_N=16, DIM=dim)
        return out
