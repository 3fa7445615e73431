# /// case
# reference = "layer_norm"
# shows = "a helper that computes block and warps, and refuses long rows"
# ///

"""Block and warps are calculated by a helper that refuses rows that are too long; any number of leading axes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

MAX_FUSED_SIZE = 65536


def calculate_settings(n):
    block = triton.next_power_of_2(n)
    if block > MAX_FUSED_SIZE:
        raise RuntimeError(f"cannot launch a block of {block} elements")
    num_warps = 4
    if block >= 32768:
        num_warps = 32
    elif block >= 8192:
        num_warps = 16
    elif block >= 2048:
        num_warps = 8
    return block, num_warps


@triton.jit
def layer_norm_forward_kernel(
    Y_ptr, Y_row_stride, X_ptr, X_row_stride, W_ptr, B_ptr, Mean_ptr, RSTD_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    row_idx = tl.program_id(0).to(tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    Y_ptr += row_idx * Y_row_stride
    X_ptr += row_idx * X_row_stride
    X_row = tl.load(X_ptr + col_offsets, mask=mask, other=0)
    W_row = tl.load(W_ptr + col_offsets, mask=mask, other=1.0)
    B_row = tl.load(B_ptr + col_offsets, mask=mask, other=0.0)
    mean = tl.sum(X_row, axis=0) / n_cols
    centered = tl.where(mask, X_row - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centered * centered, axis=0) / n_cols + eps)
    tl.store(Mean_ptr + row_idx, mean)
    tl.store(RSTD_ptr + row_idx, rstd)
    tl.store(Y_ptr + col_offsets, centered * rstd * W_row + B_row, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, X):
        shape = X.shape
        dim = shape[-1]
        X = X.reshape(-1, dim)
        n_rows, n_cols = X.shape
        BLOCK_SIZE, num_warps = calculate_settings(n_cols)
        Y = torch.empty((n_rows, n_cols), dtype=X.dtype, device=X.device)
        Mean = torch.empty(n_rows, dtype=X.dtype, device=X.device)
        RSTD = torch.empty(n_rows, dtype=X.dtype, device=X.device)
        layer_norm_forward_kernel[(n_rows,)](
            Y, Y.stride(0), X, X.stride(0), self.norm.weight, self.norm.bias, Mean, RSTD, n_cols, self.norm.eps,
            BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps,
        )  # fmt: skip
        return Y.view(*shape)
