# /// case
# reference = "hashed_integers"
# kernels = ["hash_kernel"]
# shows = "shifts, masks and a bitcast"
# ///

"""Shifts, masks and a bitcast; a size that the kernel is not specialised on."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def hash_kernel(x_ptr, h_ptr, f_ptr, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    shift = SHIFT if SHIFT > 0 else 1
    h = (x ^ (x >> shift)) * 31
    h = (h.to(tl.uint32, bitcast=True) & 0x7FFF).to(tl.int32)
    even = (h % 2) == 0
    r = tl.where(even, h // 3, h * 3 + 1)
    tl.store(h_ptr + i, r, mask=m)
    tl.store(f_ptr + i, h.to(tl.float32) * (1.0 / 32768.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        h = torch.empty_like(x)
        f = torch.empty(x.shape, dtype=torch.float32, device=x.device)
        hash_kernel[(triton.cdiv(x.numel(), 64),)](x, h, f, x.numel(), BLOCK=64, SHIFT=3)
        return h, f
