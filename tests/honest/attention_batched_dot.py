# /// case
# reference = "multi_query_attention"
# shows = "three-dimensional operands of tl.dot"
# ///

"""All heads of a block of queries in one program: three-dimensional operands of tl.dot, reshaped and broadcast."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(1)
    row, key, lane = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, KEYS), tl.arange(0, SIZE)
    head = tl.arange(0, LANES)[:, None, None]
    at = ((batch * queries + row[None, :, None]) * HEADS + head) * SIZE + lane[None, None, :]
    inside = (row < queries)[None, :, None] & (head < HEADS)
    q = tl.load(q_ptr + at, mask=inside, other=0.0)
    k_at = (batch * keys + key[:, None]) * SIZE + lane[None, :]
    k = tl.load(k_ptr + k_at, mask=key[:, None] < keys, other=0.0)
    v = tl.load(v_ptr + k_at, mask=key[:, None] < keys, other=0.0)
    k = tl.broadcast_to(tl.trans(k)[None, :, :], (LANES, SIZE, KEYS))
    v = tl.broadcast_to(v[None, :, :], (LANES, KEYS, SIZE))
    score = tl.dot(q, k, input_precision="ieee") * scale
    score = tl.where((key < keys)[None, None, :], score, float("-inf"))
    power = tl.exp(score - tl.max(score, 2)[:, :, None])
    out = tl.dot(power, v, input_precision="ieee") / tl.sum(power, 2)[:, :, None]
    tl.store(out_ptr + at, out, mask=inside)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        (batch, queries, heads, size), keys = q.shape, k.shape[1]
        out = torch.empty_like(q)
        attention[(triton.cdiv(queries, 16), batch)](
            q, k, v, out, queries, keys, size**-0.5, HEADS=heads, SIZE=size, ROWS=16,
            KEYS=max(16, triton.next_power_of_2(keys)), LANES=triton.next_power_of_2(heads),
        )  # fmt: skip
        return out
