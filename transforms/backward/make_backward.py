"""Make a row with gradients: the module is lowered for training, then treated like any other."""

from __future__ import annotations

from functools import partial

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Outcome
from kernelquarry.pipeline.schema.records import Probed, TrainingPair
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.screen import screen
from kernelquarry.transforms.split import split
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.variants.chain_stages import chain
from kernelquarry.transforms.verify import VerifySettings, verify


def backward(probed: Probed, sandbox: Sandbox, settings: VerifySettings | None = None) -> Outcome[TrainingPair]:
    """A row with gradients, or the outcome of the stage that drops it."""
    settings = settings or VerifySettings(find_counterexamples=False)
    return chain(
        probed,
        partial(lower, sandbox=sandbox, training=True),
        tidy,
        partial(verify, sandbox=sandbox, settings=settings),
        screen,
        split,
    )
