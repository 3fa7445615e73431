# /// case
# reference = "token_embedding"
# shows = "64-bit offsets into a table"
# ///

"""A tile of rows gathered by 64-bit offsets, and a table that is read by position."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embed(index_ptr, token_ptr, position_ptr, out_ptr, count, length, size, ROWS: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, SIZE)
    index = tl.load(index_ptr + row, mask=row < count, other=0).to(tl.int64)
    inside = (row < count)[:, None] & (lane < size)[None, :]
    token = tl.load(token_ptr + index[:, None] * size + lane[None, :], mask=inside)
    position = tl.load(position_ptr + (row % length)[:, None] * size + lane[None, :], mask=inside)
    tl.store(out_ptr + row[:, None] * size + lane[None, :], token + position, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, tokens, positions, size):
        super().__init__()
        self.token = nn.Embedding(tokens, size)
        self.position = nn.Embedding(positions, size)

    def forward(self, index):
        token, position = self.token.weight, self.position.weight
        count, length = index.numel(), index.shape[1]
        size = token.shape[1]
        out = token.new_empty((*index.shape, size))
        width = triton.next_power_of_2(size)
        embed[(triton.cdiv(count, 8),)](index, token, position, out, count, length, size, ROWS=8, SIZE=width)
        return out
