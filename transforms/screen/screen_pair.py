"""Turns a verified candidate into a row, unless a filter objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelquarry.filters import FILTERS, Filter, measure
from kernelquarry.filters.objection import Objection
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair, Row, Verified
from kernelquarry.transforms.similarity.operator_signature import depth, size


def screen(verified: Verified, filters: Sequence[Filter] = FILTERS) -> Outcome[Pair]:
    """The row of a verified candidate, or a drop with the evidence of the first filter that objects."""
    pair = flatten_verified(verified)
    if (objection := first_objection(pair, filters)) is not None:
        return Dropped(verified.id, objection.reason, objection.evidence)
    graph = verified.candidate.probed.graph
    measures = measure(pair)
    if graph != "[]":  # not too large to be recorded
        measures = replace(measures, operators=size(graph), depth=depth(graph))
    return Kept(replace(pair, measures=measures))


def first_objection(row: Row, filters: Sequence[Filter] = FILTERS) -> Objection | None:
    """The objection of the first filter that has one."""
    return next((objection for check in filters if (objection := check(row)) is not None), None)
