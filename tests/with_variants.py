"""Modules for kernels in half precision and autotuned ones, and what the stages before verify make of them."""

from __future__ import annotations

from dataclasses import replace

from modules import Call, probed, source, whole

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Candidate, Lowered, Probed
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.variants.make_variant import cast

X = (Call({"x": (6, 40)}), Call({"x": (9, 40)}))

MODULES = {
    "linear and gelu": (source("F.gelu(self.fc(x))", "self.fc = nn.Linear(40, 16)"), X),
    "softmax": (source("torch.softmax(x * self.scale, -1)", "self.scale = nn.Parameter(torch.rand(40))"), X),
    "a deep norm": (
        source("self.norm(torch.tanh(self.fc(x)) + x)", "self.fc = nn.Linear(40, 40)\nself.norm = nn.LayerNorm(40)"),
        X,
    ),
    "convolution": (
        source(
            "F.relu(self.bn(self.conv(x)))",
            "self.conv = nn.Conv2d(8, 8, 3, stride=2, padding=1)\nself.bn = nn.BatchNorm2d(8)",
        ),
        (Call({"x": (2, 8, 9, 8)}), Call({"x": (3, 8, 11, 8)})),
    ),
    "a long sum": (source("x.abs().mean(-1)"), (Call({"x": (6, 3000)}), Call({"x": (9, 3000)}))),
    "indices": (
        source("self.table(index) * 2", "self.table = nn.Embedding(10, 8)", signature="index"),
        (Call({"index": whole((4, 5), 10)}),),
    ),
}


def candidate_of(known: Probed, dtype: str, sandbox: Sandbox) -> Candidate:
    lowered = lower(cast(known, dtype), sandbox, dtype=dtype)
    assert isinstance(lowered, Kept), lowered
    candidate = tidy(lowered.record)
    assert isinstance(candidate, Kept), candidate
    return candidate.record


def lowered_of(name: str, sandbox: Sandbox) -> Lowered:
    code, calls = MODULES[name]
    lowered = lower(probed(code, *calls), sandbox)
    assert isinstance(lowered, Kept), lowered
    return replace(lowered.record, probed=complete(lowered.record.probed))


def complete(known: Probed) -> Probed:
    return replace(known, operators=("aten._softmax", "aten.mul"), cluster=cluster_id(["0"]))
