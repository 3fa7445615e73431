"""Traces of candidates in a guest without a GPU, read as the host reads them."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, Status
from kernelquarry.pipeline.sandbox.executor.program import Copy, Fill, Launch, Pointer, read_kernels, read_program
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec, ModuleSource
from kernelquarry.pipeline.sandbox.jobs.trace import TRACE, TracedCall, TraceReply, TraceRequest
from kernelquarry.pipeline.sandbox.tensor_map import Tiling

SOURCE = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, count, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(x_ptr + at, mask=inside) * tl.load(weight_ptr + at % 4, mask=inside) * factor
    tl.store(out_ptr + at, value, mask=inside)

@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 16})], key=["count"])
@triton.jit
def doubled(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < count), mask=at < count)

@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 256}, num_warps=16)], key=["count"])
@triton.jit
def product(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + at % count)
    tl.store(out_ptr + at, tl.dot(x, x), mask=at < count)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("table", torch.arange(4.0), persistent=False)
        self.plain = torch.arange(4.0)

    def launch(self, x, weight, out):
        scale[(triton.cdiv(x.numel(), 64),)](x, weight, out, x.numel(), 0.5, BLOCK=64)
        return out

    def forward(self, x):
BODY
"""
PLAIN = "return self.launch(x, self.weight, torch.empty_like(x))"


def trace(
    sandbox: Sandbox,
    body: str,
    shapes: tuple[tuple[int, ...], ...] = ((6, 4),),
    strided: bool = False,
) -> Report:
    code = SOURCE.replace("BODY", textwrap.indent(textwrap.dedent(body), " " * 8))
    calls = tuple(
        TracedCall('[{"tensor":0}]', "{}", (InputSpec(shape, "float32"),), strided, trial=number)
        for number, shape in enumerate(shapes)
    )
    return sandbox.run(Job(TRACE, TraceRequest(ModuleSource(code, "ModelNew", "[]"), "sm_90", calls)))


def program(report: Report, index: int = 0) -> Any:
    assert report.reply is not None, report.traceback
    assert report.reply.programs, report.reply
    return read_program(report.reply.programs[index], len(read_kernels([*report.reply.kernels])))


def test_strided_inputs_have_their_layout(sandbox: Sandbox) -> None:
    traced = program(trace(sandbox, "x = x.contiguous()\n" + PLAIN, strided=True))
    given = traced.named["input.0"]
    assert (given.shape, given.strides, given.offset) == ((6, 4), (1, 7), 8)
    copy, launch = traced.steps
    assert isinstance(copy, Copy) and copy.source == given
    assert launch.arguments[0] == Pointer(copy.target.storage, 0) and copy.target.strides == (4, 1)


def test_a_launch_with_its_buffers(sandbox: Sandbox) -> None:
    report = trace(sandbox, PLAIN)
    traced = program(report)
    (launch,) = traced.steps
    x, weight, out = launch.arguments[:3]
    assert (x, weight) == (
        Pointer(traced.named["input.0"].storage, 0),
        Pointer(traced.named["state.weight"].storage, 0),
    )
    assert isinstance(out, Pointer) and traced.outputs[0].storage == out.storage
    assert [(a.kind, a.value) for a in launch.arguments[3:]] == [("i32", 24), ("fp32", 0.5)]
    assert (launch.grid, traced.outputs[0].shape, traced.constants) == ((1, 1, 1), (6, 4), ())
    (kernel,) = read_kernels([*report.reply.kernels])  # type: ignore[union-attr]
    assert kernel.name == "scale" and report.tensors[f"binary.{kernel.sha256}"][:4].tolist() == [0x7F, *b"ELF"]


def test_each_workload_has_a_program_and_a_binary_is_sent_once(sandbox: Sandbox) -> None:
    report = trace(sandbox, PLAIN, ((6, 4), (40, 8)))
    assert program(report, 1).steps[0].grid == (5, 1, 1)
    kernels = read_kernels([*report.reply.kernels])  # type: ignore[union-attr]
    sent = [name.removeprefix("binary.") for name in report.tensors if name.startswith("binary.")]
    assert sorted(sent) == sorted({kernel.sha256 for kernel in kernels})


def test_an_offset_into_an_input(sandbox: Sandbox) -> None:
    traced = program(trace(sandbox, "return self.launch(x[1:], self.weight, torch.empty_like(x[1:]))"))
    assert traced.steps[0].arguments[0] == Pointer(traced.named["input.0"].storage, 16)


def test_fills_copies_and_joins_are_steps(sandbox: Sandbox) -> None:
    body = """
    out = self.launch(x.t().contiguous(), self.weight, torch.zeros(4, 6, device=x.device))
    return torch.cat([out, torch.full((1, 6), 3.0, device="cuda")])
    """
    steps = program(trace(sandbox, body)).steps
    assert [type(step) for step in steps] == [Copy, Fill, Launch, Fill, Copy, Copy]
    assert steps[0].source.strides == (1, 4) and steps[0].target.strides == (6, 1)
    assert (steps[1].value, steps[3].value) == (0.0, 3.0)
    assert (steps[5].target.offset, steps[5].target.shape) == (24, (1, 6))


def test_a_tensor_of_the_constructor_is_a_constant(sandbox: Sandbox) -> None:
    report = trace(sandbox, "return self.launch(x, self.table, torch.empty_like(x))")
    (storage,) = program(report).constants
    assert report.tensors[f"constant.0.{storage}"].view(torch.float32).tolist() == [0, 1, 2, 3]


def test_a_tensor_moved_to_the_gpu_is_a_constant(sandbox: Sandbox) -> None:
    report = trace(sandbox, "return self.launch(x, self.plain.cuda(), torch.empty(x.shape, device='cuda'))")
    (storage,) = program(report).constants
    assert report.tensors[f"constant.0.{storage}"].view(torch.float32).tolist() == [0, 1, 2, 3]


DESCRIPTORS = """
import torch
import triton
from torch import nn
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def copy_tiles(source, target):
    row = triton.language.program_id(0) * 16
    target.store([row, 0], source.load([row, 0]))

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        tiles = TensorDescriptor(x[4:], SHAPE, list(x.stride()), [16, 32], padding="nan")
        copy_tiles[(1,)](tiles, TensorDescriptor.from_tensor(out, [16, 32]))
        return out
"""


def described(sandbox: Sandbox, shape: str, target: str = "sm_90") -> Report:
    call = TracedCall('[{"tensor":0}]', "{}", (InputSpec((24, 32), "float16"),))
    source = ModuleSource(DESCRIPTORS.replace("SHAPE", shape), "ModelNew", "[]")
    return sandbox.run(Job(TRACE, TraceRequest(source, target, (call,))))


def test_a_tensor_descriptor_becomes_a_map_and_its_sizes(sandbox: Sandbox) -> None:
    traced = program(described(sandbox, "[20, 32]"))
    source, *sizes = traced.steps[0].arguments[:5]
    assert source.base == Pointer(traced.named["input.0"].storage, 4 * 64)
    # float16 is 6 of `CUtensorMapDataType`; rows of a tile have 64 bytes, which is 2 of `CUtensorMapSwizzle`
    assert source.tiling == Tiling(6, (20, 32), (64,), (16, 32), 2, nan=True)
    assert [(size.kind, size.value) for size in sizes] == [("i32", 20), ("i32", 32), ("i64", 32), ("i64", 1)]
    target = traced.steps[0].arguments[5]
    assert (target.base.offset, target.tiling.shape, target.tiling.nan) == (0, (24, 32), False)


def test_before_hopper_a_tensor_descriptor_is_a_pointer_and_its_sizes(sandbox: Sandbox) -> None:
    traced = program(described(sandbox, "[20, 32]", target="sm_80"))
    source, *numbers = traced.steps[0].arguments[: len(traced.steps[0].arguments) // 2]
    assert source == Pointer(traced.named["input.0"].storage, 4 * 64)
    flags = [number.value for number in numbers if number.kind == "i1"]
    assert flags[0] == 1 and not any(flags[1:])
    assert [n.value for n in numbers if n.kind != "i1"] == [20, 32, 32, 1] * 2
    assert [n.kind for n in numbers if n.kind != "i1"] == ["i64"] * 4 + ["i32"] * 2 + ["i64"] * 2


def test_a_tensor_descriptor_ends_where_its_memory_does(sandbox: Sandbox) -> None:
    report = described(sandbox, "[21, 32]")
    assert report.status == Status.RAISED and "reaches past the end" in report.error


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return torch.relu(self.launch(x, self.weight, torch.empty_like(x)))", "relu on values"),
        ("return x if x.sum() > 0 else -x", "runs sum"),
        ("return self.launch(x, self.plain, torch.empty_like(x))", "is on the CPU"),
        ("return self.launch(x, self.weight, torch.empty(x.shape))", "is on the CPU"),
        ("return x if x[0, 0].item() else -x", "_local_scalar_dense"),
    ],
)
def test_candidates_without_a_program(sandbox: Sandbox, body: str, why: str) -> None:
    report = trace(sandbox, body)
    assert report.reply is not None, report.traceback
    assert why in report.reply.untraceable, report.reply


def tuned(sandbox: Sandbox, kernel: str, grid: str) -> list[tuple[int, ...]]:
    """Trace an autotuned kernel with two configurations on two sizes; return the grid of the one step of each trace."""
    body = f"out = torch.empty_like(x)\n{kernel}[{grid}](x, out, x.numel())\nreturn out"
    report = trace(sandbox, body, ((6, 4), (9, 4)))
    (first,), (second,) = (program(report, index).steps for index in range(2))
    return [first.grid, second.grid]


def test_an_autotuned_kernel_has_another_configuration_in_each_workload(sandbox: Sandbox) -> None:
    grids = tuned(sandbox, "doubled", 'lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)')
    assert grids == [(1, 1, 1), (3, 1, 1)]


def test_a_configuration_too_large_for_the_target_is_skipped(sandbox: Sandbox) -> None:
    assert tuned(sandbox, "product", 'lambda meta: (meta["BLOCK"],)') == [(16, 1, 1), (16, 1, 1)]


def test_a_source_that_does_not_load(sandbox: Sandbox) -> None:
    report = sandbox.run(Job(TRACE, TraceRequest(ModuleSource("1/0", "M", "[]"), "sm_90", ())))
    assert report.reply == TraceReply(load_error="ZeroDivisionError: division by zero")
