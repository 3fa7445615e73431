"""Deferred kernels: Triton IR from a candidate's guest, binaries from the guest `codegen`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec, ModuleSource
from kernelquarry.pipeline.sandbox.jobs.codegen import CODEGEN, CodegenRequest, KernelSource
from kernelquarry.pipeline.sandbox.jobs.trace import TRACE, TracedCall, TraceRequest

SOURCE = """
import torch
import triton
import triton.language as tl
from torch import nn

DECORATORS
@triton.jit
def kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.device_assert(x == x)
    tl.store(out_ptr + at, tl.exp(x), mask=at < count)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), OPTIONS)
        return out
"""


def trace(
    sandbox: Sandbox,
    deferred: bool,
    options: str = "BLOCK=64",
    decorators: str = "",
    name: str = "kernel",
    target: str = "sm_90",
) -> Report:
    code = SOURCE.replace("OPTIONS", options).replace("DECORATORS", decorators)
    code = code.replace("def kernel(", f"def {name}(").replace("kernel[", f"{name}[")
    calls = tuple(TracedCall('[{"tensor":0}]', "{}", (InputSpec((size,), "float32"),)) for size in (64, 100))
    return sandbox.run(Job(TRACE, TraceRequest(ModuleSource(code, "ModelNew", "[]"), target, calls, deferred=deferred)))


def kernels(report: Report) -> list[dict[str, Any]]:
    assert report.reply is not None, report.traceback
    return list(report.reply.kernels)


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "gfx942"])
def test_the_binary_of_the_text_is_the_binary_of_the_candidate(sandbox: Sandbox, target: str) -> None:
    direct, deferred = (trace(sandbox, flag, target=target) for flag in (False, True))
    sources = deferred.reply.sources  # type: ignore[union-attr]
    assert list(sources) == [kernel["sha256"] for kernel in kernels(deferred)] and not deferred.tensors
    made = sandbox.run(Job(CODEGEN, CodegenRequest(tuple(sources.values()))))
    assert made.reply is not None, made.traceback
    assert len(made.reply.kernels) == 1  # for sizes that 16 divides, and others
    programs = [report.reply.programs for report in (direct, deferred)]  # type: ignore[union-attr]
    for of_direct, of_deferred in zip(*programs, strict=True):
        assert {**of_direct["steps"][0], "launch": 0} == of_deferred["steps"][0]
    kernel = kernels(direct)[direct.reply.programs[1]["steps"][0]["launch"]]  # type: ignore[union-attr]
    (compiled,) = made.reply.kernels
    assert (kernel["warps"], kernel["shared"]) == (compiled.warps, compiled.shared)
    assert kernel["scratch"] == [*compiled.scratch]
    assert made.tensors["binary.0"].equal(direct.tensors[f"binary.{kernel['sha256']}"])


def test_a_binary_does_not_depend_on_the_other_sources_of_the_request(sandbox: Sandbox) -> None:
    """An entry of the cache must run on its target, whatever else was compiled in the same guest."""
    (source, *_) = trace(sandbox, True).reply.sources.values()  # type: ignore[union-attr]
    later = [replace(source, target=target) for target in ("sm_80", "sm_90", "sm_100")]
    alone = [sandbox.run(Job(CODEGEN, CodegenRequest((each,)))) for each in later]
    together = sandbox.run(Job(CODEGEN, CodegenRequest(tuple(later))))
    for number, each in enumerate(alone):
        assert together.tensors[f"binary.{number}"].equal(each.tensors["binary.0"])


def test_renamed_kernels_have_one_source(sandbox: Sandbox) -> None:
    one, other = (trace(sandbox, True, name=name) for name in ("first_kernel", "second_kernel"))
    assert one.reply.sources == other.reply.sources != {}  # type: ignore[union-attr]
    assert {kernel["name"] for kernel in kernels(one)} == {"first_kernel"}


def test_options_that_are_not_the_defaults_are_part_of_the_source(sandbox: Sandbox) -> None:
    report = trace(sandbox, True, "BLOCK=64, num_warps=2, num_stages=3")
    assert {tuple(source.options.items()) for source in report.reply.sources.values()} == {(("num_warps", 2),)}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "decorators"),
    [
        ("BLOCK=64, debug=True", ""),  # the message of the assertion names a line
        ("BLOCK=64, extern_libs={'libdevice': '/dev/null'}", ""),
        ("", "@triton.autotune([triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})], ['count'])"),
    ],
)
def test_other_kernels_are_compiled_at_once(sandbox: Sandbox, options: str, decorators: str) -> None:
    report = trace(sandbox, True, options, decorators)
    assert not report.reply.sources and kernels(report)  # type: ignore[union-attr]
    assert {f"binary.{kernel['sha256']}" for kernel in kernels(report)} == report.tensors.keys()


LARGE = """    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(count):
        x = tl.load(x_ptr + step * BLOCK * BLOCK + at)
        total = tl.dot(x, tl.load(out_ptr + step * BLOCK * BLOCK + at), total)
    tl.store(out_ptr + at, total)
"""


def test_a_source_that_does_not_compile_does_not_stop_the_others(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source, *_) = trace(sandbox, True).reply.sources.values()  # type: ignore[union-attr]
    body = SOURCE[SOURCE.index("    at = ") : SOURCE.index("\nclass")]
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", SOURCE.replace(body, LARGE))
    (large, *_) = trace(sandbox, True, "BLOCK=128, num_warps=8, num_stages=5").reply.sources.values()  # type: ignore[union-attr]
    report = sandbox.run(Job(CODEGEN, CodegenRequest((KernelSource("sm_90", "no IR", {}), large, source))))
    assert report.reply is not None, report.traceback
    first, second, third = report.reply.kernels
    assert first.error and not third.error and report.tensors.keys() == {"binary.2"}
    assert second.error.startswith("OutOfResources: out of resource: shared memory")
