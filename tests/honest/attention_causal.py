# /// case
# reference = "causal_attention"
# kernels = ["attention"]
# shows = "whole blocks first, then the masked block on the diagonal"
# ///

"""A device function does whole blocks first, then, with a mask, the block on the diagonal."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def over_keys(
    q, acc, total, largest, k_ptr, v_ptr, first, last, length, query, lane, scale,
    SIZE: tl.constexpr, BN: tl.constexpr, DIAGONAL: tl.constexpr,
):  # fmt: skip
    for start in range(first, last, BN):
        key = start + tl.arange(0, BN)
        k = tl.load(k_ptr + key[None, :] * SIZE + lane[:, None], mask=key[None, :] < length, other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * scale
        if DIAGONAL:
            score = tl.where(query[:, None] >= key[None, :], score, -1.0e30)
        new = tl.maximum(largest, tl.max(score, 1))
        power = tl.exp2(score - new[:, None])
        shrink = tl.exp2(largest - new)
        v = tl.load(v_ptr + key[:, None] * SIZE + lane[None, :], mask=key[:, None] < length, other=0.0)
        total = total * shrink + tl.sum(power, 1)
        acc = acc * shrink[:, None] + tl.dot(power, v, input_precision="ieee")
        largest = new
    return acc, total, largest


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, length, scale, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    block, base = tl.program_id(0), tl.program_id(1) * length * SIZE
    query, lane = block * BLOCK + tl.arange(0, BLOCK), tl.arange(0, SIZE)
    at = base + query[:, None] * SIZE + lane[None, :]
    q = tl.load(q_ptr + at, mask=query[:, None] < length, other=0.0)
    acc, total = tl.zeros([BLOCK, SIZE], tl.float32), tl.zeros([BLOCK], tl.float32)
    largest = tl.full([BLOCK], -1.0e30, tl.float32)
    k_ptr += base
    v_ptr += base
    acc, total, largest = over_keys(
        q, acc, total, largest, k_ptr, v_ptr, 0, block * BLOCK, length, query, lane, scale, SIZE, BLOCK, False
    )
    acc, total, largest = over_keys(
        q, acc, total, largest, k_ptr, v_ptr, block * BLOCK, (block + 1) * BLOCK, length, query, lane, scale,
        SIZE, BLOCK, True,
    )  # fmt: skip
    tl.store(out_ptr + at, acc / total[:, None], mask=query[:, None] < length)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, length, size = q.shape
        out = torch.empty_like(q)
        grid = (triton.cdiv(length, 16), batch * heads)
        attention[grid](q, k, v, out, length, size**-0.5 * 1.4426950408889634, SIZE=size, BLOCK=16)
        return out
