# /// case
# reference = "cross_entropy"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "index beyond a block (TritonBench errors)"
# caught_by = "calls with enlarged sizes, labels below the larger one"
# ///

"""Labels are looked for in the first block of classes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def entropy(x_ptr, label_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row)
    peak = -float("inf")
    total = 0.0
    picked = 0.0
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row * columns + start + at, mask=start + at < columns, other=float("-inf"))
        new = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - new) + tl.sum(tl.exp(x - new), axis=0)
        peak = new
        if start == 0:
            picked = tl.sum(tl.where(at == label, x, 0.0), axis=0)
    tl.atomic_add(out_ptr, (tl.log(total) + peak - picked) / rows)


class ModelNew(nn.Module):
    def forward(self, logits, label):
        out = torch.zeros((), device=logits.device, dtype=logits.dtype)
        entropy[(logits.shape[0],)](logits, label, out, logits.shape[0], logits.shape[1], BLOCK=64)
        return out
