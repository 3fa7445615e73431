"""The dataset card: what is in it, how it was built, what it proves and what it does not."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .funnel import StageCounts, explain
from .rejected import Rejected
from .render import render
from .summary import Summary

# Licence names that the Hub knows; everything else is "other" there and spelled out in the card.
_HUB_LICENCES = frozenset(
    {
        "apache-2.0", "bsd-2-clause", "bsd-3-clause", "bsd-3-clause-clear", "bsl-1.0", "cc0-1.0", "isc", "mit", "ncsa",
        "unlicense", "wtfpl", "zlib",
    }
)  # fmt: skip
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def render_card(
    summary: Summary,
    funnel: Sequence[StageCounts],
    configs: Mapping[str, Mapping[str, Sequence[Path]]],
    rejected: Rejected,
    corpus: str,
) -> str:
    """The card as Markdown with the Hub's YAML header. It holds no date: the same build gives the same bytes.

    `configs`: shards by config and split, the default config first; one without shards is left out.
    """
    return render(
        "card.md.j2",
        summary=summary,
        splits=dict(summary.splits),
        funnel=funnel,
        corpus=corpus,
        release=importlib.metadata.version("kernelquarry"),
        licences=_hub_licences([*dict(summary.licences), *(row.licence.spdx for row in rejected.rows)]),
        size=next((name for limit, name in _SIZES if summary.pairs < limit), "1M<n<10M"),
        configs={name: _patterns(shards) for name, shards in configs.items() if shards},
        rejected=rejected,
        explain=explain,
    )


def _patterns(shards: Mapping[str, Sequence[Path]]) -> dict[str, str]:
    return {split: f"{paths[0].parent.as_posix()}/{split}-*.parquet" for split, paths in shards.items()}


def _hub_licences(expressions: Iterable[str]) -> list[str]:
    names = {part.lower() for expression in expressions for part in re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", expression)}
    return sorted({name if name in _HUB_LICENCES else "other" for name in names if name}) or ["other"]
