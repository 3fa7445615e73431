"""How the sandbox is set up."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    workers: int = 2  # guests at once
    python: str = sys.executable  # of an environment with torch and triton
    scratch: str = ""  # folder for the guests' scratch folders; "" is the system's temporary folder
    require: tuple[str, ...] = ()  # layers without which nothing runs; see `layers.NAMES`
