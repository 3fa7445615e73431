"""A module to a row with gradients: lowered for training, then tidied, verified, screened and split as any other."""

from __future__ import annotations

from functools import partial

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Outcome
from kernelquarry.pipeline.schema.records import Probed, TrainingPair
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.screen import screen
from kernelquarry.transforms.split import split
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.variants.chain_stages import follow
from kernelquarry.transforms.verify import VerifySettings, verify


def backward(probed: Probed, sandbox: Sandbox, settings: VerifySettings | None = None) -> Outcome[TrainingPair]:
    """The row, or why there is none, by whichever stage says so. Rejected candidates have no counter-example."""
    settings = settings or VerifySettings(find_counterexamples=False)
    return follow(
        probed,
        partial(lower, sandbox=sandbox, training=True),
        tidy,
        partial(verify, sandbox=sandbox, settings=settings),
        screen,
        split,
    )
