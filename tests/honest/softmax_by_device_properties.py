# /// case
# reference = "softmax"
# shows = "a grid by the number of processors"
# ///

"""The grid follows the number of processors, which the host asks for; the device is made current around the launch."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + at, power / tl.sum(power, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        processors = torch.cuda.get_device_properties(x.device).multi_processor_count
        rows, columns = x.shape
        out = torch.empty_like(x)
        with torch.cuda.device(x.device):
            softmax[(min(rows, processors),)](x, out, rows, columns, BLOCK=triton.next_power_of_2(columns))
        return out
