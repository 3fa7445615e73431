"""The report: one HTML file that needs nothing else, for people who want to see what was built and what was lost."""

from __future__ import annotations

import importlib.metadata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from kernelquarry.filters.triviality import base_name
from kernelquarry.pipeline.dataset.render_template import render
from kernelquarry.pipeline.dataset.speeds import describe
from kernelquarry.pipeline.dataset.summary import summarise
from kernelquarry.pipeline.dataset.teacher_stats import Acceptance
from kernelquarry.pipeline.runtime.funnel import StageCounts, explain
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Pair

from .highlight import highlight
from .show import example_line, shapes

T = TypeVar("T")

PAIRS_SHOWN = 200
LOSSES_SHOWN = 5  # of each reason
EVIDENCE_SHOWN = 600  # characters


@dataclass(frozen=True, slots=True)
class PairView:
    """A pair as the page shows it."""

    pair: Pair
    python: str  # HTML
    triton: str  # HTML
    operators: str
    shapes: str
    find: str  # what the search box looks in, lower case


@dataclass(frozen=True, slots=True)
class LossView:
    """What was lost at one stage for one reason, with some of it."""

    stage: str
    reason: str
    why: str
    count: int
    examples: tuple[DropRecord, ...]


def render_report(
    corpus: str,
    pairs: Sequence[Pair],
    funnel: Sequence[StageCounts],
    losses: Iterable[DropRecord],
    taught: Acceptance | None = None,
    benchmarks: Sequence[str] = (),
) -> str:
    """The page, the same in whatever order its arguments come. `benchmarks`: those that modules were compared with."""
    shown = sample(sorted(pairs, key=lambda pair: pair.id), PAIRS_SHOWN)
    return render(
        "report.html.j2",
        corpus=corpus,
        release=importlib.metadata.version("kernelquarry"),
        summary=summarise(pairs),
        median_ratio=median([pair.verdict.worst_ratio for pair in pairs] or [0.0]),
        funnel=funnel,
        taught=taught,
        benchmarks=benchmarks,
        explain=explain,
        describe_timing=describe,
        losses=_loss_views(losses),
        evidence_shown=EVIDENCE_SHOWN,
        example_line=example_line,
        pairs=[_pair_view(pair) for pair in shown],
    )


def sample(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items, evenly spread over all of them and always the same."""
    number = min(most, len(items))
    return [items[i * len(items) // number] for i in range(number)]


def _pair_view(pair: Pair) -> PairView:
    words = (
        pair.id, pair.module_name, pair.source.package, pair.source.path, pair.licence.spdx, pair.split,
        *pair.operators, *pair.kernels,
    )  # fmt: skip
    return PairView(
        pair=pair,
        python=highlight(pair.python_code),
        triton=highlight(pair.triton_code),
        operators=" · ".join(sorted({base_name(operator) for operator in pair.operators})),
        shapes="; ".join(shapes(workload) for workload in pair.workloads),
        find=" ".join(words).lower(),
    )


def _loss_views(losses: Iterable[DropRecord]) -> dict[str, list[LossView]]:
    """Stage -> its reasons, most frequent first."""
    groups: defaultdict[tuple[str, str], list[DropRecord]] = defaultdict(list)
    for loss in losses:
        groups[loss.stage, loss.reason].append(loss)
    views: defaultdict[str, list[LossView]] = defaultdict(list)
    for (stage, reason), group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        examples = sample(sorted(group, key=lambda loss: (loss.id, loss.evidence)), LOSSES_SHOWN)
        views[stage].append(LossView(stage, reason, explain(reason), len(group), tuple(examples)))
    return dict(views)
