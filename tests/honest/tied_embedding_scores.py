# /// case
# reference = "tied_embedding"
# shows = "one parameter under two names"
# ///

"""One parameter under two names, as in language models."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scores_kernel(index_ptr, table_ptr, out_ptr, words, size, BLOCK_W: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    index = tl.load(index_ptr + row)
    d = tl.arange(0, BLOCK_D)
    word = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    embedded = tl.load(table_ptr + index * size + d, mask=d < size, other=0.0)
    mask = (word < words)[:, None] & (d < size)[None, :]
    table = tl.load(table_ptr + word[:, None] * size + d[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + row * words + word, tl.sum(table * embedded[None, :], axis=1), mask=word < words)


class ModelNew(nn.Module):
    def __init__(self, words, size):
        super().__init__()
        self.table = nn.Embedding(words, size)
        self.head = nn.Linear(size, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, index: torch.LongTensor) -> torch.FloatTensor:
        weight = self.table.weight
        words, size = weight.shape
        out = torch.empty((*index.shape, words), device=index.device, dtype=weight.dtype)
        grid = (index.numel(), triton.cdiv(words, 32))
        scores_kernel[grid](index, weight, out, words, size, BLOCK_W=32, BLOCK_D=triton.next_power_of_2(size))
        return out
