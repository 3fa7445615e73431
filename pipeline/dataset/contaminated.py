"""Modules that decontaminate took out: rows of the config `contaminated`, without text, and the public report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kernelquarry.pipeline.schema.ids import contamination_id, sha256
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Contamination, Probed
from kernelquarry.transforms.decontaminate import DEFAULT, Hit, Rung, parse_hits
from kernelquarry.transforms.decontaminate.controls import CONTROLS
from kernelquarry.transforms.split.assign_split import Shares, split_of

REPORT = "decontamination.json"


def contaminated(modules: Iterable[Probed], losses: Iterable[DropRecord]) -> tuple[Contamination, ...]:
    """A row for each of the `modules` that was dropped as contaminated, by id."""
    evidence = {loss.id: loss.evidence for loss in losses if loss.reason == Reason.CONTAMINATED.value}
    rows = [_row(module, evidence[module.id]) for module in modules if module.id in evidence]
    return tuple(sorted(rows, key=lambda row: row.id))


def describe(benchmarks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each benchmark that rows were compared with, and how much of it: "bench (250 problems, of which 249 ran)"."""
    return [
        f"{about['benchmark']} ({about['problems']:,} problems, of which {about['ran']:,} ran)" for about in benchmarks
    ]


def render_report(
    benchmarks: Sequence[Mapping[str, Any]], rows: Iterable[object], thresholds: Mapping[str, Any] = {}
) -> str:
    """What was compared with what, what each rung found, and every row that was taken out: JSON for the dataset."""
    taken_out = [row for row in rows if isinstance(row, Contamination)]
    hits = {row.id: parse_hits(row.evidence) for row in taken_out}
    every = [hit for found in hits.values() for hit in found]
    report = {
        "benchmarks": list(benchmarks),
        "thresholds": {**asdict(DEFAULT), **thresholds},
        "planted": {control.name: list(control.must) for control in CONTROLS},
        "removed": len(taken_out),
        "rungs": {rung: _of_rung(rung, every, hits) for rung in Rung},
        "by_benchmark": dict(sorted(Counter(hit.problem.partition("/")[0] for hit in every).items())),
        "rows": [
            {"id": row.id, "code_sha256": row.code_sha256, "source": asdict(row.source), "evidence": row.evidence}
            for row in taken_out
        ],
    }
    return json.dumps(report, indent=1) + "\n"


def _of_rung(rung: Rung, every: Sequence[Hit], hits: dict[str, tuple[Hit, ...]]) -> dict[str, int]:
    """Hits, the rows they are in, and the rows that no other rung found."""
    rows = [found for found in hits.values() if any(hit.rung is rung for hit in found)]
    alone = sum(all(hit.rung is rung for hit in found) for found in rows)
    return {"hits": sum(hit.rung is rung for hit in every), "rows": len(rows), "alone": alone}


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
