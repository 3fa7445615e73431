"""Modules with gradients of many kinds, and the candidates that the stages before verify make of them."""

from __future__ import annotations

from modules import Call, probed, source, whole

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Candidate, TensorSpec
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.tidy import tidy

X = (Call({"x": (6, 8)}), Call({"x": (9, 8)}))
IMAGES = (Call({"x": (2, 3, 9, 8)}), Call({"x": (3, 3, 11, 8)}))
MASKED = (Call({"x": (6, 8), "mask": TensorSpec("mask", (6, 8), "bool")}),)
SEVERAL = """
a = x.sin() * y
return a, {'mean': (x + y).mean(), 'top': x.argmax(-1)}, y.detach().exp()
"""

MODULES = {
    "linear and gelu": (source("F.gelu(self.fc(x))", "self.fc = nn.Linear(8, 16)"), X),
    "two free sizes": (
        source("(lambda a, b: a * F.gelu(b))(*self.fc(x).chunk(2, dim=-1))", "self.fc = nn.Linear(8, 32)"),
        (Call({"x": (2, 6, 8)}), Call({"x": (3, 9, 8)})),
    ),
    "layer norm": (source("self.norm(x) * 2", "self.norm = nn.LayerNorm(8)"), X),
    "softmax": (source("torch.softmax(x * self.scale, -1)", "self.scale = nn.Parameter(torch.rand(8))"), X),
    "convolution": (
        source(
            "F.relu(self.bn(self.conv(x)))",
            "self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)\nself.bn = nn.BatchNorm2d(8)",
        ),
        IMAGES,
    ),
    "transposed convolution": (
        source("self.conv(x)", "self.conv = nn.ConvTranspose2d(3, 6, 3, stride=2, padding=1, groups=3)"),
        IMAGES[:1],
    ),
    "embedding": (
        source("self.table(index) * 2", "self.table = nn.Embedding(10, 8)", signature="index"),
        (Call({"index": whole((4, 5), 10)}),),
    ),
    "several outputs": (source(SEVERAL, signature="x, y"), (Call({"x": (6, 8), "y": (6, 8)}),)),
    "a parameter used twice": (
        source("torch.tanh(x @ self.w) @ self.w.t()", "self.w = nn.Parameter(torch.rand(8, 8))"),
        X,
    ),
    "a frozen parameter": (
        source(
            "(x * self.w + self.v).exp()",
            "self.w = nn.Parameter(torch.rand(8), requires_grad=False)\nself.v = nn.Parameter(torch.rand(8))",
        ),
        X,
    ),
    "an input without gradient": (
        source("x.masked_fill(mask, 0.0).exp() * self.v", "self.v = nn.Parameter(torch.rand(8))", signature="x, mask"),
        MASKED,
    ),
}


def candidate_of(code: str, calls: tuple[Call, ...], sandbox: Sandbox) -> Candidate:
    lowered = lower(probed(code, *calls), sandbox, training=True)
    assert isinstance(lowered, Kept), lowered
    candidate = tidy(lowered.record)
    assert isinstance(candidate, Kept), candidate
    return candidate.record
