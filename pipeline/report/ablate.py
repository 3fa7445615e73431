"""What each filter removes, and what it alone removes, at the filters' own thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from kernelquarry.filters import FILTERS
from kernelquarry.filters.balance import REASONS, Caps, over_caps
from kernelquarry.pipeline.schema.records import Pair

NO_SPEED = "NoSpeed"


def objections(rows: Sequence[Pair], caps: Caps) -> dict[str, dict[str, str]]:
    """Filter -> id -> measured value, for each row that it removes."""
    found: dict[str, dict[str, str]] = {
        type(check).__name__: {row.id: said.evidence for row in rows if (said := check(row)) is not None}
        for check in FILTERS
    }
    found[NO_SPEED] = {row.id: "no times" for row in rows if not row.timings}
    over = over_caps(rows, caps)
    for name, reason in REASONS.items():
        found[f"Cap on one {name}"] = {end.id: end.evidence for end in over if end.reason is reason}
    return found


def render_ablation(rows: Sequence[Pair], caps: Caps) -> Table:
    """A line a filter: rows it removes, rows that no other removes, and one of its measured values.

    What has no times is removed by no build, so it takes nothing from what others remove alone.
    """
    found = objections(rows, caps)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("filter", "removes", "share", "alone", "for example"):
        table.add_column(name, justify="left" if name in ("filter", "for example") else "right")
    for name, removed in found.items():
        others = {id for other, ids in found.items() if other not in (name, NO_SPEED) for id in ids}
        share = f"{len(removed) / len(rows):.1%}" if rows else ""
        example = min(removed.items())[1] if removed else ""
        table.add_row(name, f"{len(removed):,}", share, f"{len(removed.keys() - others):,}", example)
    return table
