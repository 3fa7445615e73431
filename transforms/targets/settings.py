"""Settings of the stage `targets`. Imports nothing, since the command line reads them."""

from __future__ import annotations

from dataclasses import dataclass

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")  # of a release


@dataclass(frozen=True, slots=True)
class Targets:
    names: tuple[str, ...] = ()  # of `TARGETS`; none: each pair keeps the target of its verdict alone


NO_TARGETS = Targets()
