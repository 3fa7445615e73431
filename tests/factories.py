"""Records for tests: `make_x(**overrides)` returns a small, valid, deterministic record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.schema import ids
from kernelquarry.pipeline.schema.flatten import flatten_rejected
from kernelquarry.pipeline.schema.outcome import DropRecord, Status
from kernelquarry.pipeline.schema.provenance import (
    Distillation,
    Environment,
    Generator,
    Licence,
    SourceRef,
    TermsClass,
    Turn,
)
from kernelquarry.pipeline.schema.records import (
    Candidate,
    Contamination,
    CounterExample,
    Engine,
    Module,
    Pair,
    Probed,
    Purity,
    Rejection,
    StateSpec,
    TensorSpec,
    Tier,
    Timed,
    Timing,
    Trial,
    Verdict,
    Verified,
    Workload,
)

MODULE_CODE = '''import torch
from torch import nn


class Model(nn.Module):
    """Scale and shift, then clamp at zero."""

    def __init__(self, features: int = 8):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x * self.weight + self.bias)
'''
GET_INPUTS = """

def get_inputs():
    return [torch.rand(5, 8)]


def get_init_inputs():
    return [8]
"""
TRITON_CODE = '''import torch
import triton
import triton.language as tl


@triton.jit
def scale_shift_relu(out, x, weight, bias, size, features, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < size
    value = tl.load(x + index, mask) * tl.load(weight + index % features, mask)
    value += tl.load(bias + index % features, mask)
    tl.store(out + index, tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL), mask)


class ModelNew(torch.nn.Module):
    """One kernel for the multiplication, the addition and the clamp."""

    def __init__(self, features: int = 8):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        size, features = x.numel(), x.shape[-1]
        grid = (triton.cdiv(size, 256),)
        scale_shift_relu[grid](out, x, self.weight, self.bias, size, features, BLOCK=256)
        return out
'''
SOURCE = SourceRef(
    corpus="tiny", package="layers", revision="1.0", path="layers/scale.py", sha256=ids.sha256("layers/scale.py")
)
LICENCE = Licence(spdx="MIT", evidence="License-Expression: MIT")
GENERATOR = Generator(kind="inductor", name="torch.inductor", version="2.13.0", options='{"target":"sm_90"}')
ENVIRONMENT = Environment(
    python="3.11.7", torch="2.13.0", triton="3.7.1", device="cpu-interpreter", driver="", sandbox='{"network":"none"}'
)


def make_workload(*shape: int) -> Workload:
    return Workload(tensors=(TensorSpec("x", shape or (5, 8), "float32"),), args='[{"tensor":0}]')


def make_verdict(ratio: float = 0.25, **overrides: Any) -> Verdict:
    """A verdict whose worst error is `ratio` of the tolerance."""
    trial = Trial(workload=0, seed=1, distribution="normal", error=ratio * 1e-6, honest_error=1.25e-7, tolerance=1e-6)
    fields: dict[str, Any] = dict(
        tiers=(Tier.COMPILED, Tier.INTERPRETED),
        engine=Engine.INTERPRETER,
        targets=("sm_80", "sm_90"),
        trials=(trial, replace(trial, seed=2, error=trial.error / 2)),
        launches=1,
        launched_kernels=("scale_shift_relu",),
        deterministic=True,
        written=1.0,
        impostors=("zeros", "input"),
        environment=ENVIRONMENT,
    )
    return Verdict(**{**fields, **overrides})


def make_timing(eager: float = 300.0, compiled: float = 200.0, candidate: float = 100.0, **overrides: Any) -> Timing:
    """A timing with these medians in microseconds; 0 leaves the contender out."""
    medians = {"eager": eager, "compile": compiled, "candidate": candidate}
    fields: dict[str, Any] = dict(
        workload=make_workload(4096, 8192),
        enlarged=True,
        engine=Engine.TRACE,
        contenders=tuple(Timed(name, us, 0.9 * us, 1.1 * us, 50) for name, us in medians.items() if us),
        left_out="",
        floor_us=40.0,
        slope_us=95.0,
        suspect="",
        environment=replace(ENVIRONMENT, device="NVIDIA H100 80GB HBM3", driver="570.1"),
    )
    return Timing(**{**fields, **overrides})


def make_module(code: str = MODULE_CODE, **overrides: Any) -> Module:
    fields: dict[str, Any] = dict(name="ScaleShift", code=code, source=SOURCE, licence=LICENCE)
    return Module(id=ids.module_id(code), **{**fields, **overrides})


def make_probed(module: Module | None = None, **overrides: Any) -> Probed:
    module = module or make_module()
    fields: dict[str, Any] = dict(
        module=module,
        init_args="[8]",
        workloads=(make_workload(5, 8), make_workload(3, 7, 8)),
        state=(
            StateSpec("weight", "parameter", (8,), "float32", mean=1.0, std=0.0, minimum=1.0),
            StateSpec("bias", "parameter", (8,), "float32", mean=0.0, std=0.0, minimum=0.0),
        ),
        outputs='{"dtype":"float32","shape":[5,8],"tensor":0}',
        operators=("aten.add", "aten.mul", "aten.relu"),
        python_code=module.code + GET_INPUTS,
    )
    return Probed(**{**fields, **overrides})


def make_candidate(probed: Probed | None = None, **overrides: Any) -> Candidate:
    fields: dict[str, Any] = dict(
        probed=probed or make_probed(),
        triton_code=TRITON_CODE,
        kernels=("scale_shift_relu",),
        purity=Purity.PURE,
        extern_ops=(),
        shape_general=True,
        generator=GENERATOR,
        inductor_code="# generated\n" + TRITON_CODE,
        guards=("input0_1 % 2 == 0",),
    )
    return Candidate(**{**fields, **overrides})


def make_verified(candidate: Candidate | None = None, verdict: Verdict | None = None) -> Verified:
    return Verified(candidate or make_candidate(), verdict or make_verdict())


def make_pair(**overrides: Any) -> Pair:
    """A row. By default its id is derived from its code."""
    probed = make_probed()
    fields: dict[str, Any] = dict(
        module_name="ScaleShift",
        entry_point="Model",
        python_code=probed.python_code,
        triton_code=TRITON_CODE,
        inductor_code="# generated\n" + TRITON_CODE,
        generator=GENERATOR,
        source=SOURCE,
        licence=LICENCE,
        imported_files=(),
        slice_of=(),
        shapes=(),
        init_args=probed.init_args,
        workloads=probed.workloads,
        state=probed.state,
        operators=probed.operators,
        kernels=("scale_shift_relu",),
        purity=Purity.PURE,
        extern_ops=(),
        shape_general=True,
        guards=(),
        distillation=(),
        verdict=make_verdict(),
    )
    fields |= overrides
    return Pair(**{"id": ids.pair_id(fields["python_code"], fields["triton_code"]), **fields})


def make_turn(**overrides: Any) -> Turn:
    fields: dict[str, Any] = dict(
        prompts=("system@0123456789abcdef", "write@0123456789abcdef"),
        asked="A kernel, please.",
        answered="Here.",
        thinking="",
        reason="",
        finish="stop",
        request="0" * 32,
        sample=0,
        prompt_tokens=20,
        completion_tokens=10,
        cost_usd=0.02,
    )
    return Turn(**{**fields, **overrides})


def make_distillation(**overrides: Any) -> Distillation:
    fields: dict[str, Any] = dict(
        teacher="scripted",
        model="scripted",
        served="scripted-1",
        version="1",
        endpoint="own",
        terms=TermsClass.OWN,
        terms_source="ours, read on 2026-11-01",
        route="write",
        system="You write Triton kernels.",
        sampling="{}",
        turns=(make_turn(),),
        similarity=0.0,
    )
    return Distillation(**{**fields, **overrides})


def make_example(**overrides: Any) -> CounterExample:
    fields: dict[str, Any] = dict(
        workload=make_workload(2, 8),
        seed=3,
        distribution="normal",
        found="error 0.5, allowed 1e-06 (output 0, whole)",
        output="output 0[1, 7]",
        expected=0.25,
        actual=-1.5,
    )
    return CounterExample(**{**fields, **overrides})


def make_drop_record(candidate: Candidate, **overrides: Any) -> DropRecord:
    """Verify's drop record of a candidate with wrong values."""
    fields: dict[str, Any] = dict(
        stage="verify",
        status=Status.DROPPED,
        reason="wrong_values",
        evidence="workload 0, normal: error 0.5, allowed 1e-06 (output 0, whole)",
        counter_examples=(make_example(),),
    )
    return DropRecord(candidate.id, **{**fields, **overrides})


def make_rejection(**overrides: Any) -> Rejection:
    candidate = make_candidate()
    row = flatten_rejected(candidate, make_drop_record(candidate))
    return replace(row, **{"cluster": ids.cluster_id(["0"]), "split": "train", **overrides})


def make_contamination(**overrides: Any) -> Contamination:
    fields: dict[str, Any] = dict(
        id="con_0123456789abcdef",
        code_sha256=ids.sha256("code"),
        source=SOURCE,
        licence=LICENCE,
        rungs=("operators", "source"),
        problems=("bench/level1/1_Scale",),
        evidence="source bench/level1/1_Scale 1.00; operators bench/level1/1_Scale 1.00",
        cluster=ids.cluster_id(["0"]),
        split="train",
    )
    return Contamination(**{**fields, **overrides})


ACTIVATIONS: Sequence[str] = ("relu", "tanh", "sigmoid", "exp", "sin", "cos", "abs", "square", "erf", "sqrt")


def make_pairs(number: int, splits: Sequence[str] = ("train",)) -> list[Pair]:
    """Pairs that differ in every column that reports and cards count."""
    licences = ("MIT", "Apache-2.0", "BSD-3-Clause", "MIT")
    return [
        make_pair(
            python_code=MODULE_CODE.replace("relu", ACTIVATIONS[i % 10]).replace("bias", f"bias_{i}") + GET_INPUTS,
            module_name=f"Scale{i}",
            source=replace(SOURCE, package=f"layers{i % 7}", path=f"layers/scale_{i}.py"),
            licence=replace(LICENCE, spdx=licences[i % 4]),
            operators=("aten.add", "aten.mul", f"aten.{ACTIVATIONS[i % 10]}"),
            kernels=tuple(f"kernel_{k}" for k in range(1 + i % 4)),
            purity=Purity.MIXED if i % 5 == 4 else Purity.PURE,
            extern_ops=("aten.convolution",) if i % 5 == 4 else (),
            shape_general=i % 3 != 0,
            verdict=make_verdict(ratio=10.0 ** (-(i % 40) / 10)),
            cluster=ids.cluster_id([str(i)]),
            split=splits[i % len(splits)],
        )
        for i in range(number)
    ]


def make_fingerprint(settings: str = "") -> Fingerprint:
    """A fingerprint of one small module."""
    return replace(Fingerprint.of("pipeline.schema.ids"), teachers=settings)


def make_modules(number: int) -> list[Module]:
    """Distinct modules; the code of each is its number."""
    return [replace(make_module(), id=ids.module_id(str(n)), code=str(n)) for n in range(number)]
