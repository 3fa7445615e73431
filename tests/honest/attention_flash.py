# /// case
# reference = "attention"
# shows = "online softmax over blocks of keys"
# ///

"""Online softmax over blocks of keys: scores never leave the program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, scale, SIZE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head = tl.program_id(1)
    query, lane = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, SIZE)
    at = (head * queries + query[:, None]) * SIZE + lane[None, :]
    q = tl.load(q_ptr + at, mask=query[:, None] < queries, other=0.0)
    largest = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, SIZE], dtype=tl.float32)
    for start in range(0, keys, BN):
        key = start + tl.arange(0, BN)
        here = (head * keys + key[:, None]) * SIZE + lane[None, :]
        k = tl.load(k_ptr + here, mask=key[:, None] < keys, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        score = tl.where(key[None, :] < keys, score, float("-inf"))
        new = tl.maximum(largest, tl.max(score, 1))
        power = tl.exp(score - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(power, 1)
        v = tl.load(v_ptr + here, mask=key[:, None] < keys, other=0.0)
        acc = tl.dot(power, v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + at, acc / total[:, None], mask=query[:, None] < queries)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, queries, size = q.shape
        out = torch.empty_like(q)
        grid = (triton.cdiv(queries, 16), batch * heads)
        attention[grid](q, k, v, out, queries, k.shape[2], size**-0.5, SIZE=size, BM=16, BN=16, num_stages=2)
        return out
