"""Renders the report of a run: one self-contained HTML file about the pairs and the dropped records."""

from __future__ import annotations

import importlib.metadata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

from kernelquarry.filters.triviality import base_name
from kernelquarry.pipeline.dataset.contaminated import Removed
from kernelquarry.pipeline.dataset.render_template import render
from kernelquarry.pipeline.dataset.speeds import describe_timing
from kernelquarry.pipeline.dataset.summary import summarise
from kernelquarry.pipeline.dataset.teacher_stats import TeacherStats
from kernelquarry.pipeline.runtime.funnel import StageCounts, explain
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Pair

from .highlight import highlight
from .show import example_line, shapes

TEMPLATE = Path(__file__).parent / "templates" / "report.html.j2"
T = TypeVar("T")

PAIRS_SHOWN = 200
EXAMPLES_SHOWN = 5  # dropped records per reason
EVIDENCE_SHOWN = 600  # characters


def render_report(
    corpus: str,
    pairs: Sequence[Pair],
    funnel: Sequence[StageCounts],
    drops: Iterable[DropRecord],
    teacher_stats: TeacherStats | None = None,
    benchmarks: Sequence[str] = (),
    removed: Sequence[Removed] = (),
) -> str:
    """The page. It does not depend on the order of the records.

    `benchmarks`: descriptions of the benchmarks that modules were compared with. `removed`: modules that overlap one.
    """
    return render(
        TEMPLATE,
        corpus=corpus,
        release=importlib.metadata.version("kernelquarry"),
        summary=summarise(pairs),
        median_ratio=median([pair.verdict.worst_ratio for pair in pairs] or [0.0]),
        funnel=funnel,
        teacher_stats=teacher_stats,
        benchmarks=benchmarks,
        removed=removed,
        explain=explain,
        describe_timing=describe_timing,
        drop_examples=_drop_examples(drops),
        evidence_shown=EVIDENCE_SHOWN,
        example_line=example_line,
        pairs=sample(sorted(pairs, key=lambda pair: pair.id), PAIRS_SHOWN),
        highlight=highlight,
        operators=lambda pair: " · ".join(sorted(set(map(base_name, pair.operators)))),
        shapes=shapes,
        search_text=_search_text,
    )


def sample(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items, evenly spaced."""
    number = min(most, len(items))
    return [items[i * len(items) // number] for i in range(number)]


def _search_text(pair: Pair) -> str:
    """The lower-case text that the page's search box matches."""
    source = (pair.source.package, pair.source.path, pair.licence.spdx)
    return " ".join((pair.id, pair.module_name, *source, pair.split, *pair.operators, *pair.kernels)).lower()


def _drop_examples(drops: Iterable[DropRecord]) -> dict[tuple[str, str], list[DropRecord]]:
    """(stage, reason) -> a few dropped records."""
    groups: defaultdict[tuple[str, str], list[DropRecord]] = defaultdict(list)
    for drop in sorted(drops, key=lambda drop: (drop.id, drop.evidence)):
        groups[drop.stage, drop.reason].append(drop)
    return {key: sample(group, EXAMPLES_SHOWN) for key, group in groups.items()}
