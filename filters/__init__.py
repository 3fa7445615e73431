"""Pure filters of finished pairs, in the order in which they are asked. The first that objects decides."""

from __future__ import annotations

from collections.abc import Callable

from kernelquarry.pipeline.schema.records import Pair

from .length import Length
from .objection import Objection
from .secrets import Secrets
from .triviality import Triviality

Filter = Callable[[Pair], Objection | None]  # None: the pair may stay

FILTERS: tuple[Filter, ...] = (Triviality(), Length(), Secrets())
