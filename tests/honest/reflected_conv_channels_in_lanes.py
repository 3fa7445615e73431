# /// case
# reference = "reflected_conv"
# kernels = ["conv3x3"]
# shows = "reflected coordinates, and a weight that is permuted in each call"
# ///

"""Reflected coordinates by arithmetic; a weight that is permuted in each call; get_inputs behind the class."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def reflect(i, n):
    i = tl.abs(i)
    return tl.where(i >= n, 2 * (n - 1) - i, i)


@triton.jit
def conv3x3(x, w, b, y, H, W, CIN: tl.constexpr, COUT: tl.constexpr, CP: tl.constexpr, BP: tl.constexpr):
    n = tl.program_id(0)
    p = tl.program_id(1) * BP + tl.arange(0, BP)
    co = tl.arange(0, CP)
    h = p // W
    v = p % W
    ok = p < H * W
    acc = tl.zeros((BP, CP), tl.float32)
    for ci in range(CIN):
        for k in tl.static_range(9):
            hh = reflect(h + k // 3 - 1, H)
            vv = reflect(v + k % 3 - 1, W)
            xv = tl.load(x + ((n * CIN + ci) * H + hh) * W + vv, mask=ok, other=0.0)
            wv = tl.load(w + (ci * 9 + k) * COUT + co, mask=co < COUT, other=0.0)
            acc += xv[:, None] * wv[None, :]
    acc += tl.load(b + co, mask=co < COUT, other=0.0)[None, :]
    acc = tl.where(acc >= 0, acc, acc * 0.2)
    tl.store(y + (n * COUT + co[None, :]) * H * W + p[:, None], acc, mask=ok[:, None] & (co[None, :] < COUT))


class ModelNew(nn.Module):
    def __init__(self, cin=3, cout=4):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        n, c, h, w = x.shape
        cout = self.conv.out_channels
        packed = self.conv.weight.permute(1, 2, 3, 0).contiguous()
        y = torch.empty(n, cout, h, w, device=x.device, dtype=x.dtype)
        conv3x3[(n, triton.cdiv(h * w, 64))](
            x.contiguous(), packed, self.conv.bias, y, h, w, CIN=c, COUT=cout, CP=triton.next_power_of_2(cout), BP=64
        )
        return y


def get_inputs():
    return [torch.randn(2, 3, 16, 16).cuda()]


def get_init_inputs():
    return [3, 4]
