"""Flat rows of the dataset, made from the nested records of the stages. Rows have no split until `split`."""

from __future__ import annotations

from typing import Any

from .ids import pair_id, rejection_id
from .outcome import DropRecord
from .records import ENTRY_POINT, Candidate, Pair, Rejection, TrainingPair, Variant, Verified


def flatten_verified(verified: Verified) -> Pair:
    """The row of a verified candidate: a `TrainingPair` if its gradients were verified too, a `Variant` or a `Pair`."""
    candidate = verified.candidate
    columns = _shared_columns(candidate) | dict(
        id=pair_id(candidate.probed.python_code, candidate.triton_code),
        verdict=verified.verdict,
        explanations=verified.explanations,
        constructor_general=verified.constructor_general,
        cluster=candidate.probed.cluster,
        matched_problems=candidate.probed.matched_problems,
    )
    if candidate.training:
        return TrainingPair(**columns)
    if candidate.autotuned or candidate.dtype != "float32" or candidate.generator.kind == "library":
        return Variant(**columns, dtype=candidate.dtype, autotuned=candidate.autotuned)
    return Pair(**columns)


def flatten_rejected(candidate: Candidate, drop: DropRecord) -> Rejection:
    """The row of a candidate that verify dropped."""
    return Rejection(
        id=rejection_id(candidate.probed.python_code, candidate.triton_code),
        **_shared_columns(candidate),
        reason=drop.reason,
        evidence=drop.evidence,
        counter_examples=drop.counter_examples,
        cluster=candidate.probed.cluster,
    )


def _shared_columns(candidate: Candidate) -> dict[str, Any]:
    """The columns of `Row`, except the id."""
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
        slice_of=module.slice_of,
        shapes=probed.shapes,
    )
