# /// case
# reference = "cross_entropy"
# shows = "a gathered logit, and a mean by a second kernel"
# ///

"""A loss for each row from its log-sum-exp and one gathered logit; a second kernel takes the mean."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_losses(logit_ptr, label_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    logit = tl.load(logit_ptr + row * classes + at, mask=at < classes, other=float("-inf"))
    label = tl.load(label_ptr + row)
    largest = tl.max(logit, axis=0)
    total = tl.log(tl.sum(tl.exp(logit - largest), axis=0))
    tl.store(loss_ptr + row, total - (tl.load(logit_ptr + row * classes + label) - largest))


@triton.jit
def mean(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


class ModelNew(nn.Module):
    def forward(self, logits, label):
        rows, classes = logits.shape
        loss, out = logits.new_empty(rows), logits.new_empty(())
        row_losses[(rows,)](logits, label, loss, classes, BLOCK=triton.next_power_of_2(classes))
        mean[(1,)](loss, out, rows, BLOCK=16)
        return out
