"""The pieces that the stage `slice` cuts from one module, before they are probed."""

from __future__ import annotations

from dataclasses import dataclass

from .outcome import DropRecord
from .records import Module


@dataclass(frozen=True, slots=True)
class CutPiece:
    """A piece of a module as a module of its own, with a call of it."""

    module: Module
    own_inputs: str  # source with `get_inputs()` and `get_init_inputs()`
    pattern: str  # digest of its operators and their wiring
    form: str  # digest of its source without names and formatting

    @property
    def id(self) -> str:
        return self.module.id


@dataclass(frozen=True, slots=True)
class Cut:
    """All pieces of one module."""

    id: str  # id of the module
    pieces: tuple[CutPiece, ...]
    lost: tuple[DropRecord, ...]
