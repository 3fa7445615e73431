"""Settings of the stage `targets`. Imports nothing, since the command line reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Target = Literal["sm_80", "sm_90", "sm_100", "gfx942"]
TARGETS: tuple[Target, ...] = get_args(Target)  # of a release


@dataclass(frozen=True, slots=True)
class Targets:
    names: tuple[Target, ...] | None = None  # (): only the verdict's own; None: as the corpus is used

    def __post_init__(self) -> None:
        if self.names and len(set(self.names)) < len(self.names):
            raise ValueError("names each target at most once")

    def of_run(self, released: bool) -> Targets:
        """With names: without names in the settings, all for a corpus that releases are made from, else none."""
        return self if self.names is not None else Targets(TARGETS if released else ())
