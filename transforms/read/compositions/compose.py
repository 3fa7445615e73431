"""Generate one composed module: a seed and a number determine its source file."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from random import Random

from .blocks import AFTER, BEFORE, FAMILIES
from .builder import Builder, Kind, Value
from .mined_modules import Mined

FEWEST_PARTS = 3  # shorter compositions repeat early
SHORT = 0.5  # share of compositions that stop there, so that a small model can write their kernels
NAME = "Composed"  # class name; other classes in the file are its parts


@dataclass(frozen=True, slots=True)
class Composition:
    """A source file with one module and its parts."""

    family: str
    parts: tuple[str, ...]  # operators, blocks and the id of a mined module, in order
    code: str
    mined: Mined | None = None

    @property
    def path(self) -> str:
        """Path of the file, which names the parts, so that a row's source names them too."""
        return f"{self.family}/{'-'.join(self.parts)}"


def compose(seed: int, number: int, mined: tuple[Mined, ...] = ()) -> Composition:
    """Generate composition `number`. If `mined` has modules, every other group of eight compositions contains one."""
    random = Random(f"{seed}/{number}")
    family = sorted(FAMILIES)[number % len(FAMILIES)]
    if mined and (number // len(FAMILIES)) % 2:
        return _around(family, random, random.choice(mined))
    block, kinds = FAMILIES[family]
    builder = Builder(random, Value("x", random.choice(kinds), "dim"))
    start = builder.value.kind
    short = random.random() < SHORT
    for _ in range(0 if short else random.randint(0 if family != "elementwise" else 1, 2)):
        random.choice(BEFORE)(builder)
    block(builder)
    while len(builder.parts) < FEWEST_PARTS or (not short and random.random() < 0.3):
        random.choice(AFTER)(builder)
    width = random.choice((16, 24, 32, 40, 48, 64, 80))
    return Composition(family, tuple(builder.parts), _render(builder, f"dim: int = {width}", start))


def _around(family: str, random: Random, mined: Mined) -> Composition:
    """A mined module, followed by operators on its output."""
    builder = Builder(random, Value("x", mined.gives, str(mined.width)))
    builder.parts.append(mined.id)
    part = builder.layer("part", f"Part({mined.init_args})")
    builder.statements.append(f"x = {part}(x)")
    block, kinds = FAMILIES[family]
    for step in (block if mined.gives in kinds else random.choice(AFTER), random.choice(AFTER)):
        step(builder)
    code = f"{mined.code.rstrip()}\n\n\n{_render(builder, '', mined.takes)}"
    return Composition(family, tuple(builder.parts), code, mined)


def _render(builder: Builder, argument: str, takes: Kind) -> str:
    layers = [f"        self.{name} = {expression}" for name, expression in builder.layers]
    statements = [f"        {statement}" for statement in builder.statements]
    constructor = [f"    def __init__(self, {argument}):" if argument else "    def __init__(self):"]
    constructor += ["        super().__init__()", *layers, ""]
    functional = ["import torch.nn.functional as F"] if "F." in "\n".join(statements) else []
    return "\n".join(
        [
            "import torch",
            *functional,
            "from torch import nn",
            "",
            "",
            f"class {NAME}(nn.Module):",
            *_docstring(f"Takes {takes}. Composed of {', '.join(builder.parts)}."),
            "",
            *(constructor if layers else []),
            "    def forward(self, x):",
            *statements,
            f"        return {builder.value.name}",
            "",
        ]
    )


def _docstring(text: str) -> list[str]:
    first, *rest = textwrap.wrap(f'"""{text}', 110)
    lines = [first, *rest]
    return [f"    {line}" for line in (*lines[:-1], f'{lines[-1]}"""')]
