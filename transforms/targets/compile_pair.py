"""Compile a pair's kernels for GPU architectures other than that of its verdict. It drops no pair."""

from __future__ import annotations

import logging
from dataclasses import replace

from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.verify.compiling import compile_for_targets
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import Task

log = logging.getLogger(__name__)

_LIMITS = Limits(wall_s=360.0, cpu_s=120)  # of each guest: it compiles each kernel for several targets


def compile_pair(pair: Pair, sandbox: Sandbox, targets: tuple[str, ...]) -> Outcome[Pair]:
    """Keep the pair, with those of `targets` in its verdict for which all its kernels compile."""
    known = pair.verdict.targets
    missing = [target for target in targets if target not in known]
    if not known or not missing:
        return Kept(pair)
    try:
        compiled = compile_for_targets(Task.of_row(pair), pair.verdict, missing, sandbox, _LIMITS)
    except Rejected as rejected:
        log.info("%s: compiles for no further target: %s", pair.id, rejected.evidence)
        compiled = ()
    return Kept(replace(pair, verdict=replace(pair.verdict, targets=(*known, *compiled))))
