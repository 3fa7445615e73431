"""Settings of the stage `lower`. Imports nothing, since the command line reads them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LowerSettings:
    constructor_sizes: bool = False  # sizes that follow from the constructor's arguments are arguments of the kernels
