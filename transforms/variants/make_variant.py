"""Make a variant of a row: another kernel, which is verified, screened and split like any other."""

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
from .chain_stages import chain

_SETTINGS = VerifySettings(find_counterexamples=False)


def float16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module cast to float16, or the outcome of the stage that drops it."""
    return _in_half(probed, "float16", sandbox, settings)


def bfloat16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module cast to bfloat16, or the outcome of the stage that drops it."""
    return _in_half(probed, "bfloat16", sandbox, settings)


def autotuned(lowered: Lowered, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module with autotuned kernels, or the outcome of the stage that drops it."""
    return chain(
        lowered, partial(tidy, autotuned=True), partial(verify, sandbox=sandbox, settings=settings), screen, split
    )


def _in_half(probed: Probed, dtype: str, sandbox: Sandbox, settings: VerifySettings) -> Outcome[Variant]:
    return chain(
        cast(probed, dtype),
        partial(lower, sandbox=sandbox, dtype=dtype),
        tidy,
        partial(verify, sandbox=sandbox, settings=settings),
        screen,
        split,
    )
