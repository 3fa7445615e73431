# /// case
# reference = "divergence"
# shows = "atomics into one number"
# ///

"""A row's divergence is added to a number in zeros, by a share."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kl_rows(a_ptr, b_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    a = tl.load(a_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    b = tl.load(b_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    a = a - tl.max(a, 0)
    b = b - tl.max(b, 0)
    la = a - tl.log(tl.sum(tl.exp(a), 0))
    eb = tl.exp(b)
    sb = tl.sum(eb, 0)
    lb = b - tl.log(sb)
    t = eb / sb
    term = tl.where(mask & (t > 0), t * (lb - la), 0.0)
    tl.atomic_add(out_ptr, tl.sum(term, 0) / n_rows)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.zeros((), device=a.device, dtype=torch.float32)
        kl_rows[(a.shape[0],)](a, b, out, a.shape[0], a.shape[1], BLOCK=triton.next_power_of_2(a.shape[1]))
        return out
