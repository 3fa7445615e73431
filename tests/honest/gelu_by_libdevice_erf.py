# /// case
# reference = "gelu"
# shows = "libdevice's erf, imported under another name"
# ///

"""libdevice, by its own name; one-dimensional views, 1024 elements a program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    cdf = 0.5 * (1.0 + libdevice.erf(x * 0.7071067811865476))
    tl.store(output_ptr + offsets, x * cdf, mask=mask)


def gelu_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One launch over all elements."""
    output = torch.empty_like(x, device=x.device, memory_format=torch.contiguous_format)
    n_elements = output.numel()

    def grid(meta):
        return (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)

    gelu_add_kernel[grid](
        x.contiguous().view(-1), y.contiguous().view(-1), output.view(-1), n_elements, BLOCK_SIZE=1024
    )
    return output


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return gelu_add(x, y)
