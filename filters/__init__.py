"""Filters of finished rows: pure functions. The first one in `FILTERS` that objects to a row drops it.

The stages `read`, `screen` and `balance`, the publish gates and the reports may import this package.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelquarry.pipeline.schema.records import Measures, Row

from . import language
from .length import Length, estimate_tokens
from .noise import Noise
from .objection import Objection
from .personal import Personal
from .secrets import Secrets
from .triviality import Triviality

Filter = Callable[[Row], Objection | None]  # None: no objection

TRIVIALITY, LENGTH, NOISE, SECRETS, PERSONAL = Triviality(), Length(), Noise(), Secrets(), Personal()
FILTERS: tuple[Filter, ...] = (TRIVIALITY, LENGTH, NOISE, SECRETS, PERSONAL)


def measure(row: Row) -> Measures:
    """Measure a row with every filter, without thresholds, and its kernels. The graph's measures are left out."""
    return Measures(
        computing_operators=TRIVIALITY.measure(row),
        characters=LENGTH.measure(row),
        non_ascii=NOISE.measure(row),
        credentials=SECRETS.measure(row),
        personal=PERSONAL.measure(row),
        kernels=len(row.kernels),
        inside=int(language.check(row.triton_code, module=row.python_code) is None),
        tokens=estimate_tokens(row.triton_code),
    )
