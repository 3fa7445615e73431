"""Settings of the stage `targets`. Imports nothing, since the command line reads them."""

from __future__ import annotations

from dataclasses import dataclass

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")  # of a release


@dataclass(frozen=True, slots=True)
class Targets:
    names: tuple[str, ...] | None = None  # of `TARGETS`; (): only the verdict's own; None: as the corpus is used

    def of_run(self, released: bool) -> Targets:
        """With names: without names in the settings, all for a corpus that releases are made from, else none."""
        return self if self.names is not None else Targets(TARGETS if released else ())
