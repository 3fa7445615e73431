"""The configs of the published dataset. To add one, define its record in `schema` and add a line here.

The rows of a config are derived from each verified pair (`derive`), or come from a stage. A config without rows has no
folder and is not on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from kernelquarry.pipeline.schema.chats import Conversation, Example, Exercise
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Contamination, Pair, Rejection, TrainingPair, Variant

from .chat_rows import conversations, examples, exercises

Published: TypeAlias = Pair | Example | Exercise | Conversation | Contamination | Rejection  # a row of any config


@dataclass(frozen=True, slots=True)
class Config:
    """One config of the dataset."""

    name: str
    record: type[Published]
    description: str  # for the card and the docs
    derive: Callable[[Pair], Iterable[Published]] | None = None  # makes rows from a pair; None: a stage makes the rows

    @property
    def folder(self) -> Path:
        """The folder of the shards, relative to the dataset."""
        return Path("data") / self.name


CONFIGS: tuple[Config, ...] = (
    Config("pairs", Pair, "modules, each with a verified kernel and the evidence"),
    Config("sft", Example, "chats that end in a verified kernel, with and without thinking", examples),
    Config("rl", Exercise, "prompts, with the task that a verifier needs to judge an answer", exercises),
    Config("multiturn", Conversation, "a model's answers and the verifier's replies, to a verified end", conversations),
    Config("backward", TrainingPair, "modules with kernels for their gradients too, verified in the same way"),
    Config(
        "variants", Variant, "kernels in half precision, autotuned, or one for each operator, verified in the same way"
    ),
    Config("contaminated", Contamination, "modules that overlap a benchmark: digests, **no text**"),
    Config("rejected", Rejection, "candidates that failed verification: **wrong, or unverifiable**"),
)


def find_config(name: str) -> Config:
    """The config of that name. Raises: UserError."""
    for config in CONFIGS:
        if config.name == name:
            return config
    raise UserError(f"no config is called {name}: there are {', '.join(config.name for config in CONFIGS)}")


def derive_rows(pairs: Sequence[Pair]) -> dict[str, list[Published]]:
    """Config -> rows derived from the pairs. If several pairs give the same row, the first pair by id counts."""
    pairs = sorted(pairs, key=lambda pair: pair.id)
    derived: dict[str, list[Published]] = {}
    for config in CONFIGS:
        if config.derive is not None:
            rows: dict[str, Published] = {}
            for row in chain.from_iterable(map(config.derive, pairs)):
                rows.setdefault(row.id, row)
            derived[config.name] = list(rows.values())
    return derived
