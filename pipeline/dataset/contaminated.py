"""Modules that decontaminate dropped: the rows of the config `contaminated`, and the public report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kernelquarry.pipeline.schema.ids import contamination_id, sha256
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Contamination, Probed
from kernelquarry.transforms.decontaminate import DEFAULT, Hit, Rung, parse_hits
from kernelquarry.transforms.decontaminate.controls import CONTROLS
from kernelquarry.transforms.split.assign_split import Shares, split_of

REPORT = "decontamination.json"


def contaminated(modules: Iterable[Probed], drops: Iterable[DropRecord]) -> tuple[Contamination, ...]:
    """A row for each of the `modules` that was dropped as contaminated, sorted by id."""
    evidence = {drop.id: drop.evidence for drop in drops if drop.reason == Reason.CONTAMINATED.value}
    rows = [_row(module, evidence[module.id]) for module in modules if module.id in evidence]
    return tuple(sorted(rows, key=lambda row: row.id))


@dataclass(frozen=True, slots=True)
class Removed:
    """A module that was dropped as contaminated, for the report."""

    name: str
    place: str
    hits: tuple[Hit, ...]


def removed(modules: Iterable[Probed], drops: Iterable[DropRecord]) -> tuple[Removed, ...]:
    """The `modules` that were dropped as contaminated, sorted by place and name."""
    evidence = {drop.id: drop.evidence for drop in drops if drop.reason == Reason.CONTAMINATED.value}
    found = [
        Removed(one.module.name, f"{one.module.source.package}/{one.module.source.path}", parse_hits(evidence[one.id]))
        for one in modules
        if one.id in evidence
    ]
    return tuple(sorted(found, key=lambda one: (one.place, one.name)))


def describe_benchmarks(benchmarks: Sequence[Mapping[str, Any]]) -> list[str]:
    """A description of each benchmark that rows were compared with.

    It reads "name (250 problems, of which 249 ran; owner/name at 1a2b3c4, MIT)".
    """
    return [
        f"{about['benchmark']} ({about['problems']:,} problems, of which {about['ran']:,} ran"
        + (f"; {about['source']} at {about['commit'][:7]}, {about['licence']})" if about.get("commit") else ")")
        for about in benchmarks
    ]


def render_report(
    benchmarks: Sequence[Mapping[str, Any]], rows: Iterable[object], thresholds: Mapping[str, Any] = {}
) -> str:
    """The decontamination report as JSON: benchmarks, thresholds, matches of each rung, and every dropped module."""
    removed = [row for row in rows if isinstance(row, Contamination)]
    hits = {row.id: parse_hits(row.evidence) for row in removed}
    all_hits = [hit for row_hits in hits.values() for hit in row_hits]
    report = {
        "benchmarks": list(benchmarks),
        "thresholds": {**asdict(DEFAULT), **thresholds},
        "planted": {control.name: list(control.must) for control in CONTROLS},
        "removed": len(removed),
        "rungs": {rung: _count_hits(rung, list(hits.values())) for rung in Rung},
        "by_benchmark": dict(sorted(Counter(hit.problem.partition("/")[0] for hit in all_hits).items())),
        "rows": [
            {"id": row.id, "code_sha256": row.code_sha256, "source": asdict(row.source), "evidence": row.evidence}
            for row in removed
        ],
    }
    return json.dumps(report, indent=1) + "\n"


def _count_hits(rung: Rung, hits: Sequence[Sequence[Hit]]) -> dict[str, int]:
    """Count for one rung its hits, the rows with a hit, and the rows without a hit of another rung. `hits`: by row."""
    own = [[hit.rung is rung for hit in row_hits] for row_hits in hits]
    return {"hits": sum(map(sum, own)), "rows": sum(map(any, own)), "alone": sum(map(all, own))}


def _row(module: Probed, evidence: str) -> Contamination:
    hits = parse_hits(evidence)
    return Contamination(
        id=contamination_id(module.id),
        code_sha256=sha256(module.python_code),
        source=module.module.source,
        licence=module.module.licence,
        rungs=tuple(sorted({hit.rung for hit in hits})),
        problems=tuple(sorted({hit.problem for hit in hits})),
        evidence=evidence,
        cluster=module.cluster,
        split=split_of(module.cluster, Shares()),
    )
