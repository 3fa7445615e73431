"""Pure filters of finished rows, in the order in which they are asked. The first that objects decides."""

from __future__ import annotations

from collections.abc import Callable

from kernelquarry.pipeline.schema.records import Row

from .length import Length
from .noise import Noise
from .objection import Objection
from .personal import Personal
from .secrets import Secrets
from .triviality import Triviality

Filter = Callable[[Row], Objection | None]  # None: the row may be published

FILTERS: tuple[Filter, ...] = (Triviality(), Length(), Noise(), Secrets(), Personal())
