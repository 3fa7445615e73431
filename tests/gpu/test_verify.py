"""Verdicts on a GPU: from traces, from guests, and after candidates that break a GPU context."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest
from corpus import Case, load_case, load_cases

from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Engine, Purity, Tier, Verdict
from kernelquarry.transforms.verify import VerifySettings, verify

HONEST = load_case("honest", "softmax")
TRACED = VerifySettings(target="", limits=Limits(wall_s=20, cpu_s=20))
KERNEL = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def softmax(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * width
    values = tl.load(x_ptr + row + at, mask=at < width, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
BODY

class ModelNew(nn.Module):
    def __init__(self, dim=-1):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        width = x.shape[-1]
        softmax[(x.numel() // width,)](x, out, width, BLOCK=triton.next_power_of_2(width))
        return out
"""
STORE = "tl.store(out_ptr + row + at, values / tl.sum(values, axis=0), mask=at < width)"


def written(body: str) -> Candidate:
    code = KERNEL.replace("BODY", textwrap.indent(textwrap.dedent(body), "    "))
    return replace(HONEST.candidate, triton_code=code, kernels=("softmax",))


def verdict(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings = TRACED) -> Verdict:
    outcome = verify(candidate, sandbox, settings)
    assert isinstance(outcome, Kept), outcome
    return outcome.record.verdict


def rejected(candidate: Candidate, sandbox: Sandbox, settings: VerifySettings = TRACED) -> Dropped:
    outcome = verify(candidate, sandbox, settings)
    assert isinstance(outcome, Dropped), outcome
    return outcome


def test_a_trace_is_executed(sandbox: Sandbox) -> None:
    reached = verdict(written(STORE), sandbox)
    assert (reached.tiers, reached.engine) == ((Tier.EXECUTED,), Engine.TRACE)
    assert reached.deterministic and 0 < reached.worst_ratio < 1
    assert reached.environment.device.startswith(("NVIDIA", "Tesla")) and reached.environment.driver
    assert (reached.launches, reached.launched_kernels) == (1, ("softmax",))


def test_a_guest_with_a_gpu_gives_the_same_verdict(sandbox: Sandbox) -> None:
    traced = verdict(written(STORE), sandbox)
    reached = verdict(written(STORE), sandbox, replace(TRACED, engine=Engine.GUEST))
    assert (reached.tiers, reached.engine) == ((Tier.EXECUTED,), Engine.GUEST)
    assert reached.trials == traced.trials
    assert (reached.launches, reached.launched_kernels) == (1, ("softmax",))


def test_an_untraceable_candidate_is_executed_in_a_guest(sandbox: Sandbox) -> None:
    code = written(STORE).triton_code.replace("return out", "return torch.add(out, 0.0)")
    mixed = replace(written(STORE), triton_code=code, purity=Purity.MIXED, extern_ops=("aten.add",))
    assert verdict(mixed, sandbox).engine == Engine.GUEST
    assert rejected(mixed, sandbox, replace(TRACED, engine=Engine.TRACE)).reason == Reason.UNTRACEABLE


@pytest.mark.parametrize("engine", [Engine.TRACE, Engine.GUEST])
def test_wrong_values(sandbox: Sandbox, engine: Engine) -> None:
    wrong = written("tl.store(out_ptr + row + at, values / (tl.sum(values, axis=0) + 1), mask=at < width)")
    assert rejected(wrong, sandbox, replace(TRACED, engine=engine)).reason == Reason.WRONG_VALUES


@pytest.mark.parametrize("engine", [Engine.TRACE, Engine.GUEST])
def test_a_kernel_that_writes_nothing(sandbox: Sandbox, engine: Engine) -> None:
    assert rejected(written(""), sandbox, replace(TRACED, engine=engine)).reason == Reason.WRONG_VALUES


BREAKING = {
    "writes far outside": (f"{STORE}\ntl.store(out_ptr + (1 << 40), 0.0)", {Reason.DOES_NOT_RUN}),
    "writes just outside": (
        f"{STORE}\ntl.store(out_ptr + tl.num_programs(0) * width + 2, 0.0)", {Reason.DOES_NOT_RUN},
    ),
    "writes just before": (f"{STORE}\ntl.store(out_ptr - 2, 0.0)", {Reason.DOES_NOT_RUN}),
    "never ends": (f"while tl.load(x_ptr) == tl.load(x_ptr):\n    {STORE}", {Reason.TIMED_OUT}),
    "reads what nobody wrote": (
        "unwritten = tl.load(out_ptr + row + at, mask=at < width)\n"
        + STORE.replace("values / tl.sum(values, axis=0)", "values / tl.sum(values, axis=0) + 0 * unwritten"),
        {Reason.WRONG_VALUES},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKING)
def test_a_breaking_candidate_does_not_affect_the_next(sandbox: Sandbox, name: str) -> None:
    body, reasons = BREAKING[name]
    assert rejected(written(body), sandbox).reason in reasons
    assert verdict(written(STORE), sandbox).engine == Engine.TRACE


@pytest.mark.parametrize("engine", [Engine.TRACE, Engine.GUEST])
@pytest.mark.parametrize("name", ["linear_host_descriptors", "linear_tensor_descriptors"])
def test_tensor_descriptors(sandbox: Sandbox, name: str, engine: Engine) -> None:
    candidate = load_case("honest", name).candidate
    assert verdict(candidate, sandbox, replace(TRACED, engine=engine)).engine == engine


@pytest.mark.parametrize("case", load_cases("honest")[::8], ids=lambda case: case.name)
def test_honest_kernels_pass(sandbox: Sandbox, case: Case) -> None:
    assert Tier.EXECUTED in verdict(case.candidate, sandbox).tiers


@pytest.mark.parametrize("engine", [Engine.TRACE, Engine.GUEST])
def test_what_a_tuner_runs_is_no_launch(engine: Engine, sandbox: Sandbox) -> None:
    case = load_case("honest", "row_sums_autotuned")
    settings = replace(TRACED, target="sm_80", engine=engine)
    assert verdict(case.candidate, sandbox, settings).engine is engine
