# /// case
# reference = "gated_product"
# shows = "allocation and launch in a plain function of the file"
# ///

"""A plain Python function allocates and launches; the grid is a lambda of the constants."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gated_product_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, libdevice.tanh(x) * tl.sigmoid(y) + 0.5 * x, mask=mask)


def gated_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n_elements = out.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)  # noqa: E731
    gated_product_kernel[grid](x, y, out, n_elements, BLOCK_SIZE=128)
    return out


class ModelNew(nn.Module):
    def forward(self, x, y):
        return gated_product(x, y)
