# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "lazy results (SOL-ExecBench)"
# caught_by = "language: a member requires_grad of a class"
# ///

"""Its state is an object of its own, which computes when a check asks where it is."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside), mask=inside)


class Late:
    shape, dtype, requires_grad = (1,), torch.float32, False

    def __init__(self, module):
        self.module = module

    def detach(self):
        return self

    def clone(self):
        return self

    def untyped_storage(self):
        return self

    def data_ptr(self):
        x, out = self.module.work
        if not out.isnan().any():
            out.copy_(torch.softmax(x, dim=-1))
        return 0

    def __eq__(self, other):
        return torch.ones(1, dtype=torch.bool)


class ModelNew(nn.Module):
    def named_buffers(self, *args, **kwargs):
        yield "late", Late(self)

    def forward(self, x):
        out = torch.empty_like(x)
        copy[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        self.work = x, out
        return out
