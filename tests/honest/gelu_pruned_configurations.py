# /// case
# reference = "gelu"
# kernels = ["gelu"]
# shows = "a tuner with pruned configurations and a pre_hook"
# ///

"""A tuner whose configurations are pruned by a function, and a hook of a configuration."""

import torch.nn as nn
import triton
import triton.language as tl


def keep_small(configs, named_args, **kwargs):
    n = named_args["n"]
    kept = [config for config in configs if config.kwargs["BLOCK"] <= max(64, n)]
    return kept or configs[:1]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=1), triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 4096})],
    key=["n"],
    prune_configs_by={"early_config_prune": keep_small},
)
@triton.jit(do_not_specialize=["n"])
def gelu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    x = tl.load(x_ptr + at, at < n, 0.0) + tl.load(y_ptr + at, at < n, 0.0)
    tl.store(out_ptr + at, 0.5 * x * (1 + tl.erf(x / 1.4142135623730951)), at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x, y):
        out = x.new_empty(x.size())
        n = x.numel()
        gelu[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
        return out
