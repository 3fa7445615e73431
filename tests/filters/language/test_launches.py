"""The kernels that a text launches, and texts that are rejected for those that they do not launch."""

from __future__ import annotations

import pytest
from corpus import load_cases

from kernelquarry.filters.language.parsed_source import launched_kernels
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.verify.read_source import source_rejection

CODE = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def double(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, 2 * tl.load(x_ptr + index, mask=index < size), mask=index < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
"""
SECOND = "\n\n@triton.jit\ndef fill(out_ptr):\n    tl.store(out_ptr, 1.0)\n"
HELPER = "\n\n@triton.jit\ndef silu(x):\n    return x * tl.sigmoid(x)\n"


def rejection(code: str) -> tuple[Reason, str]:
    found = source_rejection(code)
    assert found is not None
    return found


def test_honest_kernels_are_launched() -> None:
    assert [case.name for case in load_cases("honest") if not launched_kernels(case.candidate.triton_code)] == []


def test_a_kernel_that_nothing_launches_is_rejected() -> None:
    assert source_rejection(CODE) is None and launched_kernels(CODE) == ("double",)
    reason, evidence = rejection(CODE + SECOND)
    assert reason is Reason.OUTPUT_NOT_FROM_KERNEL and evidence.startswith("never launched: fill;")
    aside = "\n\ndef run(x):\n    fill[(1,)](x)\n"
    assert launched_kernels(CODE + SECOND + aside) == ("double", "fill")
    gradient = "\n\nclass F(torch.autograd.Function):\n    def backward(ctx, g):\n        fill[(1,)](g)\n"
    assert launched_kernels(CODE + SECOND + gradient) == ("double",)
    through = aside + gradient.replace("fill[(1,)](g)", "run(g)")
    assert launched_kernels(CODE + SECOND + through) == ("double",)
    unlaunched = CODE.replace("double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)", "pass")
    assert rejection(unlaunched)[0] is Reason.OUTPUT_NOT_FROM_KERNEL


def test_a_jitted_function_that_returns_a_value_is_a_helper() -> None:
    """A helper need not be launched: it may be unused, or a constant that a kernel calls."""
    for code in (CODE + HELPER, CODE + HELPER + "\n\nTABLE = {'silu': silu}\n"):
        assert launched_kernels(code) == ("double",)
        assert source_rejection(code) is None
    assert launched_kernels(CODE + HELPER + "\n\ndef run(x):\n    silu[(1,)](x)\n") == ("double", "silu")


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        ("def (", "does not parse"),
        ("(" * 5000, "does not parse"),
        (CODE.replace("ModelNew", "Model"), "no class ModelNew, but class Model"),
    ],
)
def test_a_text_without_the_entry_is_no_code(code: str, evidence: str) -> None:
    reason, found = rejection(code)
    assert reason is Reason.NO_CODE and evidence in found


def test_a_text_that_does_not_parse_launches_nothing() -> None:
    assert launched_kernels("def (") == ()
