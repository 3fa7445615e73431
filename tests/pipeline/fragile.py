"""Work that kills its process, in a module that imports quickly."""

from __future__ import annotations

import os

from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Module


def fragile(module: Module) -> Outcome[Module]:
    if module.code == "3":
        os._exit(1)
    return Kept(module)
