# /// case
# reference = "token_embedding"
# shows = "positions that the kernel computes"
# ///

"""Positions are made by the kernel; one program for some tokens of a sequence; a two-dimensional grid."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embed(index_ptr, token_ptr, position_ptr, out_ptr, length, size, TOKENS: tl.constexpr, BLOCK: tl.constexpr):
    batch, first = tl.program_id(1), tl.program_id(0) * TOKENS
    position = first + tl.arange(0, TOKENS)
    feature = tl.arange(0, BLOCK)
    there = position < length
    index = tl.load(index_ptr + batch * length + position, mask=there, other=0)
    mask = there[:, None] & (feature < size)[None, :]
    token = tl.load(token_ptr + index[:, None] * size + feature[None, :], mask=mask, other=0.0)
    token += tl.load(position_ptr + position[:, None] * size + feature[None, :], mask=mask, other=0.0)
    out = out_ptr + (batch * length + position[:, None]) * size + feature[None, :]
    tl.store(out, token, mask=mask, cache_modifier=".cg")


class ModelNew(nn.Module):
    def __init__(self, tokens, positions, size):
        super().__init__()
        self.token = nn.Embedding(tokens, size)
        self.position = nn.Embedding(positions, size)

    def forward(self, index):
        batch, length = index.shape
        weight = self.token.weight
        out = torch.empty((batch, length, weight.shape[1]), device=weight.device, dtype=weight.dtype)
        grid = (triton.cdiv(length, 8), batch)
        embed[grid](index, weight, self.position.weight, out, length, weight.shape[1], TOKENS=8, BLOCK=16)
        return out
