"""The configs of the published dataset. To add one, define its record in `schema` and add a line here.

Rows of a config are either made from each verified pair (`derive`), or come from a stage and are given to
`dataset.write_dataset` under the config's name. A config without rows has no folder and is not on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from kernelquarry.pipeline.schema.chats import Conversation, Example, Exercise
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Contamination, Pair, Rejection, TrainingPair, Variant

from .chat_rows import conversations, examples, exercises

R = TypeVar("R")


class Published(Protocol):
    """What every row of every config has."""

    @property
    def id(self) -> str: ...
    @property
    def source(self) -> SourceRef: ...
    @property
    def licence(self) -> Licence: ...
    @property
    def cluster(self) -> str: ...
    @property
    def split(self) -> str: ...
    @property
    def schema_version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Config:
    """One config of the dataset."""

    name: str
    record: type  # of its rows: a `Published`
    what: str  # for the card and the docs
    derive: Callable[[Pair], Iterable[Published]] | None = None  # its rows of a verified pair; None: a stage gives them

    @property
    def folder(self) -> Path:
        """Of its shards, inside the dataset."""
        return Path("data") / self.name


CONFIGS: tuple[Config, ...] = (
    Config("pairs", Pair, "modules, each with a kernel that was verified, and the evidence"),
    Config("sft", Example, "chats that end in a verified kernel, with and without thinking", derive=examples),
    Config("rl", Exercise, "prompts, with what a verifier needs to judge an answer", derive=exercises),
    Config(
        "multiturn",
        Conversation,
        "a model's answers and what the verifier said of them, to a verified end",
        derive=conversations,
    ),
    Config("backward", TrainingPair, "modules with kernels for their gradients too, verified in the same way"),
    Config("variants", Variant, "kernels in float16 and bfloat16, and autotuned ones, verified in the same way"),
    Config("contaminated", Contamination, "what overlaps a benchmark and was taken out: digests, **no text**"),
    Config("rejected", Rejection, "candidates that failed verification: **wrong, or without proof**"),
)


def config(name: str) -> Config:
    """Raises: UserError: there is none of that name."""
    for found in CONFIGS:
        if found.name == name:
            return found
    raise UserError(f"no config is called {name}: there are {', '.join(found.name for found in CONFIGS)}")


def derived(pairs: Sequence[Pair]) -> dict[str, list[Published]]:
    """Rows of the configs that follow from the pairs, by config. Equal rows of several pairs are one row."""
    ordered = sorted(pairs, key=lambda pair: pair.id)
    found: dict[str, list[Published]] = {}
    for each in CONFIGS:
        if each.derive is not None:
            rows: dict[str, Published] = {}
            for pair in ordered:
                for row in each.derive(pair):
                    rows.setdefault(row.id, row)
            found[each.name] = list(rows.values())
    return found
