# /// case
# reference = "matmul"
# kernels = ["matmul"]
# shows = "as many programs as processors, tiles in groups"
# ///

"""A persistent kernel with as many programs as the GPU has processors, tiles in groups."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tile_of(tile, num_pid_in_group, num_pid_m, GROUP: tl.constexpr):
    first = (tile // num_pid_in_group) * GROUP
    size = min(num_pid_m - first, GROUP)
    return first + (tile % size), (tile % num_pid_in_group) // size


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROCESSORS: tl.constexpr,
):  # fmt: skip
    num_pid_m, num_pid_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, PROCESSORS, flatten=False):
        pid_m, pid_n = tile_of(tile, GROUP * num_pid_n, num_pid_m, GROUP)
        rm, rn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            rk = k + tl.arange(0, BK)
            a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
            b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
            total = tl.dot(a, b, total, input_precision="ieee")
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], total, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        processors = torch.cuda.get_device_properties("cuda").multi_processor_count
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), device="cuda", dtype=a.dtype)

        def grid(meta):
            return (min(processors, triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"])),)

        matmul[grid](
            a,
            b,
            c,
            M,
            N,
            K,
            BM=32,
            BN=32,
            BK=32,
            GROUP=2,
            PROCESSORS=min(processors, triton.cdiv(M, 32) * triton.cdiv(N, 32)),
        )
        return c
