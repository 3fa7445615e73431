"""Renders the report of a run: one self-contained HTML file about the pairs and the dropped records."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

from markupsafe import Markup, escape

from kernelquarry.filters.triviality import base_name
from kernelquarry.pipeline.dataset.contaminated import Removed
from kernelquarry.pipeline.dataset.render_template import render
from kernelquarry.pipeline.dataset.speeds import describe_timing
from kernelquarry.pipeline.dataset.summary import summarise
from kernelquarry.pipeline.dataset.teacher_stats import TeacherStats
from kernelquarry.pipeline.runtime.funnel import StageCounts, explain
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Pair, Rejection

from .example import choose_example
from .show import example_line, shapes

TEMPLATE = Path(__file__).parent / "templates" / "report.html.j2"
T = TypeVar("T")

ROWS_PER_CHUNK = 20  # bodies of rows that are unpacked together
ROWS_SHOWN = 3_000  # of the pairs, and of the rejected candidates: more make a page that browsers open slowly
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
    rejected: Sequence[Rejection] = (),
    dataset: str = "out/tiny/dataset",
) -> str:
    """The page, with up to `ROWS_SHOWN` rows. It does not depend on the order of the records.

    `benchmarks`: descriptions of the benchmarks that modules were compared with. `removed`: modules that overlap one.
    `dataset`: the folder that the commands on the page name.
    """
    example = choose_example(pairs)
    others = sorted((pair for pair in pairs if pair is not example), key=lambda pair: pair.id)
    first = [example] if example is not None else []
    refused = sorted(rejected, key=lambda row: row.id)
    rows = [*first, *sample(others, ROWS_SHOWN), *sample(refused, ROWS_SHOWN)]
    return render(
        TEMPLATE,
        corpus=corpus,
        release=importlib.metadata.version("kernelquarry"),
        summary=summarise(pairs),
        median_ratio=median([pair.verdict.worst_ratio for pair in pairs] or [0.0]),
        funnel=funnel,
        unused=_unused_stages(funnel, pairs, teacher_stats),
        teacher_stats=teacher_stats,
        benchmarks=benchmarks,
        removed=removed,
        explain=explain,
        describe_timing=describe_timing,
        drop_examples=_drop_examples(drops),
        evidence_shown=EVIDENCE_SHOWN,
        example_line=example_line,
        rows=rows,
        rejected=len(rejected),
        dataset=dataset,
        pack=pack_bodies,
        chunk=ROWS_PER_CHUNK,
        breakable=breakable,
        operators=lambda row: " · ".join(sorted(set(map(base_name, row.operators)))),
        shapes=shapes,
        search_text=_search_text,
    )


def sample(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items, evenly spaced."""
    number = min(most, len(items))
    return [items[i * len(items) // number] for i in range(number)]


def pack_bodies(rows: Sequence[Pair | Rejection], body: Callable[[Pair | Rejection], str]) -> Markup:
    """The bodies of the rows as a JavaScript array of chunks: JSON, deflate, base64. A fifth of the HTML's size."""
    bodies = [str(body(row)) for row in rows]
    chunks = [json.dumps(bodies[i : i + ROWS_PER_CHUNK]) for i in range(0, len(bodies), ROWS_PER_CHUNK)]
    return Markup(json.dumps([base64.b64encode(zlib.compress(chunk.encode(), 9)).decode() for chunk in chunks]))


def breakable(id: str) -> Markup:
    """An id or a name that may be wrapped after its separators, and nowhere else."""
    return Markup(re.sub(r"([/@:_-])", r"\1<wbr>", str(escape(id))))


def _unused_stages(funnel: Sequence[StageCounts], pairs: Sequence[Pair], models: object) -> list[str]:
    """The optional stages that let every record pass, because the build had no use for them."""
    used = {
        "teach": models is not None,
        "distill": models is not None,
        "targets": len({target for pair in pairs for target in pair.verdict.targets}) > 1,
        "time": any(pair.timings for pair in pairs),
    }
    return [counts.stage for counts in funnel if not used.get(counts.stage, True) and not counts.losses()]


def _search_text(row: Pair | Rejection) -> str:
    """The lower-case text that the page's search box matches."""
    source = (row.source.package, row.source.path, row.licence.spdx)
    reason = (row.reason,) if isinstance(row, Rejection) else ()
    return " ".join((row.id, row.module_name, *source, row.split, *row.operators, *row.kernels, *reason)).lower()


def _drop_examples(drops: Iterable[DropRecord]) -> dict[tuple[str, str], list[DropRecord]]:
    """(stage, reason) -> a few dropped records."""
    groups: defaultdict[tuple[str, str], list[DropRecord]] = defaultdict(list)
    for drop in sorted(drops, key=lambda drop: (drop.id, drop.evidence)):
        groups[drop.stage, drop.reason].append(drop)
    return {key: sample(group, EXAMPLES_SHOWN) for key, group in groups.items()}
