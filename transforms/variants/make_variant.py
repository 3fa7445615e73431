"""A module to a row with another kernel: made, verified, screened and split as any other."""

from __future__ import annotations

from functools import partial

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Outcome
from kernelquarry.pipeline.schema.records import Lowered, Probed, Variant
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.screen import screen
from kernelquarry.transforms.split import split
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

from .cast import cast
from .chain_stages import follow

_SETTINGS = VerifySettings(find_counterexamples=False)  # rejected candidates have no counter-example


def float16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """The row of the module cast to float16, or why there is none, by whichever stage says so."""
    return _in_half(probed, "float16", sandbox, settings)


def bfloat16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """As `float16`, in bfloat16."""
    return _in_half(probed, "bfloat16", sandbox, settings)


def autotuned(lowered: Lowered, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """The row of the module's kernels with `triton.autotune`, or why there is none."""
    tuned = partial(tidy, autotuned=True)
    return follow(lowered, tuned, partial(verify, sandbox=sandbox, settings=settings), screen, split)


def _in_half(probed: Probed, dtype: str, sandbox: Sandbox, settings: VerifySettings) -> Outcome[Variant]:
    return follow(
        cast(probed, dtype),
        partial(lower, sandbox=sandbox, dtype=dtype),
        tidy,
        partial(verify, sandbox=sandbox, settings=settings),
        screen,
        split,
    )
