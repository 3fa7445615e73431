"""Synthetic modules made of steps with several spellings, so that equal functions are known in advance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n"
# Each step: what the constructor makes for it, and its spellings. {x}: its input, {c}: a number, {n}: a name.
STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "relu": ("", ("F.relu({x})", "{x}.clamp(min=0)", "torch.maximum({x}, torch.zeros_like({x}))")),
    "silu": ("", ("F.silu({x})", "{x} * torch.sigmoid({x})")),
    "softplus": ("", ("F.softplus({x})", "torch.log1p(torch.exp({x}))")),
    "tanh": ("", ("torch.tanh({x})", "2 * torch.sigmoid(2 * {x}) - 1")),
    "scale": ("", ("{x} * {c}", "{c} * {x}")),
    "shift": ("", ("{x} + {c}", "torch.add({x}, {c})")),
    "centre": ("", ("{x} - {x}.mean(dim=-1, keepdim=True)", "{x} - {x}.sum(-1, True) / {x}.shape[-1]")),
    "square": ("", ("{x} ** 2", "{x} * {x}", "torch.square({x})")),
    "softmax": ("", ("F.softmax({x}, dim=-1)", "torch.exp({x}) / torch.exp({x}).sum(-1, keepdim=True)")),
    "rms": ("", ("{x} * torch.rsqrt(({x} ** 2).mean(-1, keepdim=True) + 1e-5)",
                 "{x} / torch.sqrt(({x} * {x}).mean(-1, True) + 1e-5)")),
    "sine": ("", ("torch.sin({x})", "{x}.sin()")),
    "error": ("", ("torch.erf({x})", "1 - torch.erfc({x})")),
    "arc": ("", ("torch.atan({x})", "{x}.atan()")),
    "linear": ("self.{n} = nn.Linear(features, features)",
               ("self.{n}({x})", "F.linear({x}, self.{n}.weight, self.{n}.bias)",
                "{x} @ self.{n}.weight.t() + self.{n}.bias")),
    "norm": ("self.{n} = nn.LayerNorm(features)",
             ("self.{n}({x})", "F.layer_norm({x}, ({x}.shape[-1],), self.{n}.weight, self.{n}.bias)")),
}  # fmt: skip
NUMBERS = (0.25, 0.5, 0.75, 1.25, 1.5, 2.5, 3.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a module: its steps, and the spelling of each."""

    steps: tuple[str, ...]
    numbers: tuple[float, ...]
    spellings: tuple[int, ...]
    names: str = "hidden"  # of variables and layers
    width: str = "features"

    def render(self) -> str:
        layers, lines, value = [], [], "x"
        for i, (step, number, spelling) in enumerate(zip(self.steps, self.numbers, self.spellings, strict=True)):
            made, spelt = STEPS[step]
            name = f"{self.names}_layer{i}"
            if made:
                layers.append("        " + made.format(n=name).replace("features", self.width) + "\n")
            text = spelt[spelling % len(spelt)].format(x=value, c=number, n=name)
            lines.append(f"        {self.names}{i} = {text}\n")
            value = f"{self.names}{i}"
        init = (
            f"    def __init__(self, {self.width}):\n        super().__init__()\n{''.join(layers)}\n" if layers else ""
        )
        return f"{HEAD}{init}    def forward(self, x):\n{''.join(lines)}        return {value}\n"


def draw(random_: random.Random, least: int = 4, most: int = 8) -> Plan:
    """A random plan in the first spellings. No step follows itself."""
    steps: list[str] = []
    for _ in range(random_.randint(least, most)):
        steps.append(random_.choice([step for step in STEPS if not steps or step != steps[-1]]))
    numbers = tuple(random_.choice(NUMBERS) for _ in steps)
    return Plan(tuple(steps), numbers, (0,) * len(steps))


def renamed(plan: Plan, random_: random.Random) -> Plan:
    return replace(plan, names=random_.choice(("signal", "feat", "out", "tmp")), width="dim")


def reshaped(plan: Plan, random_: random.Random) -> Plan:
    return replace(renamed(plan, random_), numbers=tuple(n * random_.choice((2, 3, 5)) for n in plan.numbers))


def refactored(plan: Plan, random_: random.Random) -> Plan:
    """The plan with another spelling of every step that has one."""
    return replace(renamed(plan, random_), spellings=tuple(random_.randint(1, 2) for _ in plan.steps))


def contains(steps: Sequence[str], part: Sequence[str]) -> bool:
    return any(tuple(steps[i : i + len(part)]) == tuple(part) for i in range(len(steps) - len(part) + 1))
