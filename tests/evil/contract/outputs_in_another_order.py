# /// case
# reference = "scale_in_place"
# reason = "wrong_contract"
# evidence = "shifted"
# source = "structure of the result not compared (KernelGYM, KernelBench)"
# caught_by = "structure of the outputs"
# ///

"""The right entries in another order."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triple_(x, shifted, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = 3.0 * tl.load(x + i, mask=i < n)
        tl.store(x + i, v, mask=i < n)
        tl.store(shifted + i, v + 1.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_contiguous()
        flat = x.view(-1)
        shifted = torch.empty_like(flat)
        triple_[(2,)](flat, shifted, flat.numel(), BLOCK=32)
        return dict(shifted=shifted.view(x.shape), tripled=x)
