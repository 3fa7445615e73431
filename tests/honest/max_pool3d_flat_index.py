# /// case
# reference = "max_pool3d"
# shows = "a flat index that is taken apart"
# ///

"""A flat index is taken apart; stride, padding and dilation are constants."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_pool3d_kernel(
    x_ptr,
    y_ptr,
    total,
    D,
    H,
    W,
    OD,
    OH,
    OW,
    K: tl.constexpr,
    S: tl.constexpr,
    P: tl.constexpr,
    DIL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = idx < total
    ow = idx % OW
    t = idx // OW
    oh = t % OH
    t = t // OH
    od = t % OD
    nc = t // OD
    best = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for kd in range(K):
        for kh in range(K):
            for kw in range(K):
                z = od * S - P + kd * DIL
                y = oh * S - P + kh * DIL
                x = ow * S - P + kw * DIL
                ok = live & (z >= 0) & (z < D) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
                v = tl.load(x_ptr + ((nc * D + z) * H + y) * W + x, mask=ok, other=-float("inf"))
                best = tl.maximum(best, v)
    tl.store(y_ptr + idx, best, mask=live)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation

    def _out(self, n):
        return (n + 2 * self.padding - self.dilation * (self.kernel_size - 1) - 1) // self.stride + 1

    def forward(self, x):
        N, C, D, H, W = x.shape
        OD, OH, OW = self._out(D), self._out(H), self._out(W)
        y = x.new_empty((N, C, OD, OH, OW))
        total = y.numel()
        max_pool3d_kernel[(triton.cdiv(total, 256),)](
            x.contiguous(),
            y,
            total,
            D,
            H,
            W,
            OD,
            OH,
            OW,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            256,
        )
        return y
