"""Planted controls: rows that the ladder must find in every run, or the run fails.

Two problems stand for a benchmark. Edited copies of them are planted among the rows. They pass through the sandbox, the
fingerprints and the ladder like every row, and never reach the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelquarry.pipeline.schema.errors import UserError

from .ladder import Hit, Rung

BENCHMARK = "planted"
PREFIX = "planted_"  # starts the ids of planted rows


class ControlError(UserError):
    """The ladder missed a planted row or found a clean one, so its results cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Control:
    """A planted row. `must` are the rungs that must find it; no rung may find a row without any."""

    name: str
    code: str
    must: tuple[Rung, ...]


_HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
_GATED = """class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.value = nn.Linear(features, 24)
        self.gate = nn.Linear(features, 24)

    def forward(self, x):
        value = torch.tanh(self.value(x) * 0.5)
        gate = torch.sigmoid(self.gate(x))
        mixed = value * gate
        return mixed - mixed.mean(dim=-1, keepdim=True)
"""
_ENERGY = """class Model(nn.Module):
    def forward(self, x, y):
        distance = torch.exp(-(x - y) ** 2)
        weight = torch.cos(x) + torch.sin(y)
        return torch.log1p(distance * weight.abs()).sum(dim=-1)
"""
PROBLEMS = {"gated": _HEAD + _GATED, "energy": _HEAD + _ENERGY}


def _edited(code: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        if old not in code:
            raise ValueError(f"nothing to edit: {old!r}")
        code = code.replace(old, new)
    return code


_RENAMED = _edited(PROBLEMS["gated"], ("value", "signal"), ("gate", "door"), ("mixed", "result"), ("features", "width"))
_RESHAPED = _edited(PROBLEMS["gated"], ("24", "96"), ("0.5", "1.25"))
_REORDERED = _edited(
    PROBLEMS["gated"],
    ("        value = torch.tanh(self.value(x) * 0.5)\n", ""),
    (
        "        mixed = value * gate\n",
        "        value = torch.tanh(0.5 * self.value(x))\n        mixed = gate * value\n",
    ),
)
_REFACTORED = (
    _HEAD
    + """class Model(nn.Module):
    def forward(self, left, right):
        first = torch.cos(left) + torch.sin(right)
        kernel = 1 / torch.exp(left * left - 2 * left * right + right * right)
        return torch.log(1 + torch.sqrt(first * first) * kernel).sum(-1)
"""
)
_TRANSPOSED = (
    _HEAD
    + """class Model(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.first = nn.Parameter(torch.rand(in_channels, 24))
        self.second = nn.Parameter(torch.rand(in_channels, 24))
        self.shifts = nn.ParameterList([nn.Parameter(torch.rand(24)) for _ in range(2)])

    def forward(self, image):
        a, b = image @ self.first + self.shifts[0], torch.matmul(image, self.second) + self.shifts[1]
        joined = torch.tanh(a / 2) / (1 + torch.exp(-b))
        return joined - joined.sum(-1, True) / joined.shape[-1]
"""
)
_ONE_ADDED = _edited(PROBLEMS["energy"], ("        distance", "        x = F.relu(x)\n        distance"))
_EDITED = _edited(PROBLEMS["gated"], ("torch.tanh", "torch.atan"))
_NEGATIVES = {
    "norm": "class Model(nn.Module):\n    def __init__(self, features):\n        super().__init__()\n"
    "        self.scale = nn.Parameter(torch.ones(features))\n\n    def forward(self, x):\n"
    "        return x * torch.rsqrt((x ** 2).mean(-1, keepdim=True) + 1e-6) * self.scale\n",
    "gates": "class Model(nn.Module):\n    def __init__(self, features):\n        super().__init__()\n"
    "        self.value = nn.Linear(features, 24)\n        self.gate = nn.Linear(features, 24)\n\n"
    "    def forward(self, x):\n        return F.gelu(self.value(x)) + F.softplus(self.gate(x)) * self.value(x)\n",
    "loss": "class Model(nn.Module):\n    def forward(self, x, y):\n        return ((x - y).abs() + 1).log().mean()\n",
}  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    Control("same", PROBLEMS["gated"], tuple(rung for rung in Rung if rung is not Rung.ONE_ADDED)),
    Control("renamed", _RENAMED, (Rung.SOURCE, Rung.OPERATORS, Rung.BEHAVIOUR)),
    Control("reshaped", _RESHAPED, (Rung.SOURCE, Rung.OPERATORS)),
    Control("reordered", _REORDERED, (Rung.OPERATORS, Rung.BEHAVIOUR)),
    Control("refactored", _REFACTORED, (Rung.BEHAVIOUR,)),
    Control("transposed", _TRANSPOSED, (Rung.BEHAVIOUR,)),
    Control("one_added", _ONE_ADDED, (Rung.ONE_ADDED,)),
    Control("edited", _EDITED, (Rung.NGRAMS,)),
    *(Control(f"negative_{name}", _HEAD + code, ()) for name, code in _NEGATIVES.items()),
)


def check(found: Mapping[str, Iterable[Hit]]) -> None:
    """Check the hits of each planted row, by name.

    Raises: ControlError: a rung missed a row or found a clean one, or a row is missing.
    """
    for control in CONTROLS:
        if control.name not in found:
            raise ControlError(f"decontaminate: the planted row {control.name} was lost on the way")
        rungs = {hit.rung for hit in found[control.name] if hit.problem.startswith(f"{BENCHMARK}/")}
        if missed := [rung for rung in control.must if rung not in rungs]:
            raise ControlError(f"decontaminate: {', '.join(missed)} did not find the planted row {control.name}")
        if not control.must and rungs:
            raise ControlError(
                f"decontaminate: {', '.join(sorted(rungs))} found the planted row {control.name}, which is clean"
            )
