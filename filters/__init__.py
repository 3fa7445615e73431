"""Pure filters of finished rows, in the order in which they are asked. The first that objects decides."""

from __future__ import annotations

from collections.abc import Callable

from kernelquarry.pipeline.schema.records import Measures, Row

from .length import Length
from .noise import Noise
from .objection import Objection
from .personal import Personal
from .secrets import Secrets
from .triviality import Triviality

Filter = Callable[[Row], Objection | None]  # None: the row may be published

TRIVIALITY, LENGTH, NOISE, SECRETS, PERSONAL = Triviality(), Length(), Noise(), Secrets(), Personal()
FILTERS: tuple[Filter, ...] = (TRIVIALITY, LENGTH, NOISE, SECRETS, PERSONAL)


def measure(row: Row) -> Measures:
    """What each filter measures of a row; thresholds play no part."""
    return Measures(
        computing_operators=TRIVIALITY.measure(row),
        characters=LENGTH.measure(row),
        non_ascii=NOISE.measure(row),
        credentials=SECRETS.measure(row),
        personal=PERSONAL.measure(row),
    )
