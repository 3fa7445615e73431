# /// case
# reference = "split_heads"
# shows = "three outputs from slices of one input"
# ///

"""Three outputs from slices of one input; a constant says which of them is scaled."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def take_part(x_ptr, out_ptr, length, heads, size, scale, PART: tl.constexpr, SIZE: tl.constexpr):
    batch, head, position = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    lane = tl.arange(0, SIZE)
    source = ((batch * length + position) * 3 + PART) * heads + head
    x = tl.load(x_ptr + source * size + lane, mask=lane < size)
    if PART == 0:
        x *= scale
    target = (batch * heads + head) * length + position
    tl.store(out_ptr + target * size + lane, x, mask=lane < size)


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        size = width // (3 * self.heads)
        parts = tuple(x.new_empty((batch, self.heads, length, size)) for _ in range(3))
        for number, part in enumerate(parts):
            take_part[(batch, self.heads, length)](
                x, part, length, self.heads, size, size**-0.5, PART=number, SIZE=triton.next_power_of_2(size)
            )
        return parts
