"""From nested records to a flat row, and through the filters."""

from __future__ import annotations

from collections.abc import Sequence

from kernelquarry.filters import FILTERS, Filter
from kernelquarry.pipeline.schema.ids import pair_id
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Pair, Verified


def screen(verified: Verified, filters: Sequence[Filter] = FILTERS) -> Outcome[Pair]:
    """The row of a verified candidate, dropped with the evidence of the first filter that objects."""
    pair = flatten(verified)
    for check in filters:
        if (objection := check(pair)) is not None:
            return Dropped(verified.id, objection.reason, objection.evidence)
    return Kept(pair)


def flatten(verified: Verified) -> Pair:
    """The row; its split is not known yet."""
    candidate = verified.candidate
    probed, module = candidate.probed, candidate.probed.module
    return Pair(
        id=pair_id(probed.python_code, candidate.triton_code),
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
        verdict=verified.verdict,
        cluster=probed.cluster,
    )
