"""How the sandbox is set up."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from kernelquarry.pipeline.schema.errors import UserError

from . import layers


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    workers: int = 2  # guests at once
    python: str = sys.executable  # of an environment with torch and triton
    scratch: str = ""  # folder for the guests' files; "" is the system's temporary folder
    require: tuple[str, ...] = ()  # layers without which nothing runs

    def __post_init__(self) -> None:
        unknown = set(self.require) - set(layers.NAMES)
        if unknown:
            raise UserError(f"no such layers: {', '.join(sorted(unknown))}; there are {', '.join(layers.NAMES)}")
        if self.workers < 1:
            raise ValueError(f"{self.workers} workers")
