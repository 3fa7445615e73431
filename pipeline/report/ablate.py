"""Ablation of the filters: the rows that each filter removes, and those that no other filter removes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from kernelquarry.filters import FILTERS
from kernelquarry.filters.balance import REASONS, Caps, over_caps
from kernelquarry.pipeline.schema.records import Pair

NO_SPEED = "NoSpeed"


def objections(rows: Sequence[Pair], caps: Caps) -> dict[str, dict[str, str]]:
    """Filter -> id -> measured value, for each row that the filter removes."""
    removed: dict[str, dict[str, str]] = {
        type(check).__name__: {row.id: objection.evidence for row in rows if (objection := check(row)) is not None}
        for check in FILTERS
    }
    removed[NO_SPEED] = {row.id: "no times" for row in rows if not row.timings}
    over = over_caps(rows, caps)
    for name, reason in REASONS.items():
        removed[f"Cap on one {name}"] = {end.id: end.evidence for end in over if end.reason is reason}
    return removed


def render_ablation(rows: Sequence[Pair], caps: Caps) -> Table:
    """A table with one line per filter: removed rows, rows that no other filter removes, and an example.

    No build removes rows without times, so `NoSpeed` does not count as another filter.
    """
    objections_by_filter = objections(rows, caps)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("filter", "removes", "share", "alone", "for example"):
        table.add_column(name, justify="left" if name in ("filter", "for example") else "right")
    for name, removed in objections_by_filter.items():
        others = {id for other, ids in objections_by_filter.items() if other not in (name, NO_SPEED) for id in ids}
        share = f"{len(removed) / len(rows):.1%}" if rows else ""
        example = min(removed.items())[1] if removed else ""
        table.add_row(name, f"{len(removed):,}", share, f"{len(removed.keys() - others):,}", example)
    return table
