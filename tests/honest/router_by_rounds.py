# /// case
# reference = "router"
# shows = "the best of computed scores, round by round"
# ///

"""Each round takes the best expert that is left, as routers of mixtures do."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def route(x_ptr, weights_ptr, experts_ptr, count, K: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * count + at, mask=at < count, other=-float("inf"))
    p = tl.exp(x - tl.max(x, axis=0))
    p = tl.where(at < count, p / tl.sum(p, axis=0), -1.0)
    for k in tl.static_range(K):
        best = tl.argmax(p, axis=0)
        tl.store(weights_ptr + row * K + k, tl.max(p, axis=0))
        tl.store(experts_ptr + row * K + k, best.to(tl.int64))
        p = tl.where(at == best, -1.0, p)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        rows, count = x.shape
        if self.k > count:
            raise RuntimeError(f"{self.k} of {count} experts")
        weights = torch.empty((rows, self.k), dtype=x.dtype, device=x.device)
        experts = torch.empty((rows, self.k), dtype=torch.int64, device=x.device)
        route[(rows,)](x, weights, experts, count, K=self.k, BLOCK=triton.next_power_of_2(count))
        return weights, experts
