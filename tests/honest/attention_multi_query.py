# /// case
# reference = "multi_query_attention"
# shows = "keys that all heads share, all scores in one tile"
# ///

"""Heads are strided in the queries and shared in the keys; all scores of a query are in one tile."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, heads, scale, q_batch, q_row, q_head, k_batch, k_row,
    SIZE: tl.constexpr, BM: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    query, key, lane = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, KEYS), tl.arange(0, SIZE)
    q_at = batch * q_batch + query[:, None] * q_row + head * q_head + lane[None, :]
    q = tl.load(q_ptr + q_at, mask=query[:, None] < queries, other=0.0)
    k_at = batch * k_batch + key[:, None] * k_row + lane[None, :]
    k = tl.load(k_ptr + k_at, mask=key[:, None] < keys, other=0.0)
    v = tl.load(v_ptr + k_at, mask=key[:, None] < keys, other=0.0)
    score = tl.dot(q, k.T, input_precision="ieee") * scale
    score = tl.where((key < keys)[None, :], score, float("-inf"))
    power = tl.exp(score - tl.max(score, axis=1, keep_dims=True))
    share = power / tl.sum(power, axis=1, keep_dims=True)
    out = tl.dot(share, v, input_precision="ieee")
    tl.store(out_ptr + q_at, out, mask=query[:, None] < queries)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        (batch, queries, heads, size), keys = q.shape, k.shape[1]
        out = torch.empty_like(q)
        attention[(triton.cdiv(queries, 16), batch * heads)](
            q, k, v, out, queries, keys, heads, size**-0.5, *q.stride()[:3], *k.stride()[:2],
            SIZE=size, BM=16, KEYS=max(16, triton.next_power_of_2(keys)),
        )  # fmt: skip
        return out
