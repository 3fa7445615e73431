# /// case
# reference = "relu6_and_idle_layers"
# shows = "Python's min and max on blocks, and code under __main__"
# ///

"""Python's min and max on blocks, a tuner that keeps its results, and a program that tries and times it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


@triton.autotune(
    configs=[triton.Config({"BLOCK": size}, num_warps=4 if is_cuda() else 8) for size in (256, 512)],
    key=["n"],
    cache_results=True,
)
@triton.jit
def relu6_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, min(max(x, 0.0), 6.0), mask=mask)


class ReLU6(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu6_kernel[lambda m: (triton.cdiv(x.numel(), m["BLOCK"]),)](x, out, x.numel())
        return out


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.act = ReLU6()
        self.drop = nn.Dropout(p)
        self.flat = nn.Flatten()

    def forward(self, x):
        return self.flat(self.drop(self.act(x)))


if __name__ == "__main__":
    import time

    m = ModelNew(0.3).eval().cuda()
    start = time.time()
    print(m(torch.randn(4, 3, 5, 7, device="cuda")).shape, time.time() - start)
