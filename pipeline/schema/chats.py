"""Rows for training: what is made of a verified pair, or of a conversation that ended in one.

Ids are content addresses of what is trained on: the same row has the same id in every release, and another prompt or
kernel gives another row.
"""

from __future__ import annotations

from dataclasses import dataclass

from .provenance import Generator, Licence, SourceRef
from .records import SCHEMA_VERSION, StateSpec, Timing, Workload


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: str  # "system", "user" or "assistant"
    content: str


@dataclass(frozen=True, slots=True)
class Chat:
    """What the rows of all configs for training hold."""

    id: str
    pair: str  # id of the row of `pairs` that it is made of; "" if there is none
    prompts: tuple[str, ...]  # the files that it was rendered from, each with its digest
    source: SourceRef
    licence: Licence


@dataclass(frozen=True, slots=True)
class Example(Chat):
    """One row of the config `sft`: a chat that ends in a verified kernel."""

    messages: tuple[Message, ...]
    thinking: bool  # whether the last message thinks before it answers
    thought_by: str  # then "columns", of the pair, or the model that explained it; else ""
    generator: Generator  # what wrote the kernel
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Exercise(Chat):
    """One row of the config `rl`: a chat that asks for a kernel, and what a verifier needs to judge any answer."""

    prompt: tuple[Message, ...]
    python_code: str
    init_args: str
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    operators: tuple[str, ...]
    targets: tuple[str, ...]  # that the pair's kernel compiles for
    timings: tuple[Timing, ...]  # of the pair, for rewards that ask for speed
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is said: in an exercise, the prompt alone."""
        return self.prompt


@dataclass(frozen=True, slots=True)
class Conversation(Chat):
    """One row of the config `multiturn`: a model's answers and what the verifier said of them, to the end."""

    messages: tuple[Message, ...]
    reasons: tuple[str, ...]  # of each answer in turn: code of the `Reason` why it was rejected, "" if it was verified
    verified: bool  # whether the last answer was
    generator: Generator  # the model
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION
