"""Turn Inductor's source for a module into a candidate."""

from __future__ import annotations

from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Lowered, Purity

from .candidate_file import render_candidate
from .refusals import NeedsImport, NotTidied

_EVIDENCE = 500  # characters


def tidy(lowered: Lowered, autotuned: bool = False) -> Outcome[Candidate]:
    """Write one self-contained file with the class `ModelNew`.

    With `autotuned`, kernels choose their block sizes on the GPU, except kernels that read their own output.
    """
    try:
        rendered = render_candidate(lowered, autotuned)
    except NeedsImport as refusal:
        return Dropped(lowered.id, Reason.CONSTRUCTOR_NEEDS_IMPORT, str(refusal)[:_EVIDENCE])
    except NotTidied as refusal:
        return Dropped(lowered.id, Reason.NOT_TIDIED, str(refusal)[:_EVIDENCE])
    if autotuned and not rendered.is_tuned:
        return Dropped(lowered.id, Reason.NOTHING_TO_TUNE, "each kernel reads what it writes")
    return Kept(
        Candidate(
            probed=lowered.probed,
            triton_code=rendered.code,
            kernels=rendered.kernels,
            purity=Purity.MIXED if rendered.extern_operators else Purity.PURE,
            extern_ops=rendered.extern_operators,
            shape_general=lowered.shape_general,
            generator=lowered.generator,
            inductor_code="\n\n".join([lowered.inductor_code, *(half.inductor_code for half in lowered.backward)]),
            guards=lowered.guards,
            training=bool(lowered.backward),
            dtype=lowered.dtype,
            autotuned=autotuned,
        )
    )
