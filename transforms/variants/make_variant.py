"""Make a variant of a row: other kernels, or gradients too. It is verified, screened and split like any other row."""

from __future__ import annotations

from functools import partial
from typing import Any

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Outcome
from kernelquarry.pipeline.schema.records import Lowered, Probed, TrainingPair, Variant
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
    return _lowered_anew(cast(probed, "float16"), sandbox, settings, dtype="float16")


def bfloat16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module cast to bfloat16, or the outcome of the stage that drops it."""
    return _lowered_anew(cast(probed, "bfloat16"), sandbox, settings, dtype="bfloat16")


def backward(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[TrainingPair]:
    """A row of the module lowered for training, or the outcome of the stage that drops it."""
    return _lowered_anew(probed, sandbox, settings, training=True)


def autotuned(lowered: Lowered, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module with autotuned kernels, or the outcome of the stage that drops it."""
    return chain(
        lowered, partial(tidy, autotuned=True), partial(verify, sandbox=sandbox, settings=settings), screen, split
    )


def _lowered_anew(probed: Probed, sandbox: Sandbox, settings: VerifySettings, **how: Any) -> Outcome[Any]:
    return chain(
        probed,
        partial(lower, sandbox=sandbox, **how),
        tidy,
        partial(verify, sandbox=sandbox, settings=settings),
        screen,
        split,
    )
