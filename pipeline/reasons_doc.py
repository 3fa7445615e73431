"""`docs/reasons.md`, made from `schema/reasons.py`:  python -m kernelquarry.pipeline.reasons_doc > docs/reasons.md"""

from __future__ import annotations

import sys
from itertools import groupby

from .schema.reasons import Reason

_STAGES = {"guest": "Any stage that runs a guest"}
_HEAD = """\
# Reasons

Why a record was dropped. A dropped record is not fit, and its evidence says what was measured; a record that *errored*
is our failure, carries the type of the exception in place of a code, and is tried again by the next run. Both stand in
the `lost.parquet` of their stage, with the id, the stage and the evidence. Codes are stable between releases.

This page is made from `pipeline/schema/reasons.py` by `python -m kernelquarry.pipeline.reasons_doc > docs/reasons.md`.
"""


def render_reasons() -> str:
    """The page: a table for each stage, in the order of the stages."""
    parts = [_HEAD]
    for stage, reasons in groupby(Reason, key=lambda reason: reason.stage):
        rows = "".join(f"| `{reason.value}` | {reason.why} |\n" for reason in reasons)
        parts.append(f"\n## {_STAGES.get(stage, stage.capitalize())}\n\n| code | why |\n|---|---|\n{rows}")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render_reasons())
