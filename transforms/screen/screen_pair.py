"""From nested records to flat rows, and through the filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.filters import FILTERS, Filter, measure
from kernelquarry.filters.objection import Objection
from kernelquarry.pipeline.schema.ids import pair_id, rejection_id
from kernelquarry.pipeline.schema.loss import Loss
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import (
    ENTRY_POINT,
    Candidate,
    Pair,
    Rejection,
    Row,
    TrainingPair,
    Variant,
    Verified,
)


def screen(verified: Verified, filters: Sequence[Filter] = FILTERS) -> Outcome[Pair]:
    """The row of a verified candidate, dropped with the evidence of the first filter that objects."""
    pair = flatten(verified)
    if (objection := first_objection(pair, filters)) is not None:
        return Dropped(verified.id, objection.reason, objection.evidence)
    return Kept(replace(pair, measures=measure(pair)))


def first_objection(row: Row, filters: Sequence[Filter] = FILTERS) -> Objection | None:
    """Of the first filter that has one."""
    return next((objection for check in filters if (objection := check(row)) is not None), None)


def flatten(verified: Verified) -> Pair:
    """The row, a `TrainingPair` if its gradients were verified too, or a `Variant`; its split is not known yet."""
    candidate = verified.candidate
    columns = _shared(candidate) | dict(
        id=pair_id(candidate.probed.python_code, candidate.triton_code),
        verdict=verified.verdict,
        explanations=verified.explanations,
        cluster=candidate.probed.cluster,
    )
    if candidate.training:
        return TrainingPair(**columns)
    if candidate.autotuned or candidate.dtype != "float32":
        return Variant(**columns, dtype=candidate.dtype, autotuned=candidate.autotuned)
    return Pair(**columns)


def flatten_rejected(candidate: Candidate, loss: Loss) -> Rejection:
    """The row of a candidate that verify dropped; its split is not known yet."""
    return Rejection(
        id=rejection_id(candidate.probed.python_code, candidate.triton_code),
        **_shared(candidate),
        reason=loss.reason,
        evidence=loss.evidence,
        counter_examples=loss.counter_examples,
        cluster=candidate.probed.cluster,
    )


def _shared(candidate: Candidate) -> dict[str, Any]:
    """The columns of `Row`, but the id."""
    probed, module = candidate.probed, candidate.probed.module
    return dict(
        module_name=module.name,
        entry_point=ENTRY_POINT,
        python_code=probed.python_code,
        triton_code=candidate.triton_code,
        inductor_code=candidate.inductor_code,
        generator=candidate.generator,
        source=module.source,
        licence=module.licence,
        imported_files=module.imported_files,
        init_args=probed.init_args,
        workloads=probed.workloads,
        state=probed.state,
        operators=probed.operators,
        kernels=candidate.kernels,
        purity=candidate.purity,
        extern_ops=candidate.extern_ops,
        shape_general=candidate.shape_general,
        guards=candidate.guards,
        distillation=candidate.distillation,
    )
