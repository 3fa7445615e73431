"""Rows for training: chats made from verified pairs, and conversations with models that ended in one.

Ids are content addresses of the messages: the same chat has the same id in every release, and a change of the prompt or
the kernel makes a new row.
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
    """The columns that all training configs share."""

    id: str
    pair: str  # id of the row of `pairs` that the chat is made from; "" if there is none
    prompts: tuple[str, ...]  # template files that the chat was rendered from, each with its digest
    source: SourceRef
    licence: Licence


@dataclass(frozen=True, slots=True)
class Example(Chat):
    """One row of the config `sft`: a chat that ends in a verified kernel."""

    messages: tuple[Message, ...]
    thinking: bool  # True if the last message thinks before it answers
    thought_by: str  # source of the thinking: "columns" of the pair, or the name of a model; "" without thinking
    generator: Generator  # author of the kernel
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Exercise(Chat):
    """One row of the config `rl`: a prompt for a kernel, and the task that a verifier needs to judge an answer."""

    prompt: tuple[Message, ...]
    python_code: str
    init_args: str
    workloads: tuple[Workload, ...]
    state: tuple[StateSpec, ...]
    operators: tuple[str, ...]
    targets: tuple[str, ...]  # GPU architectures that the pair's kernel compiles for
    timings: tuple[Timing, ...]  # of the pair, for rewards that depend on speed
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt, which is the whole chat of an exercise."""
        return self.prompt


@dataclass(frozen=True, slots=True)
class Conversation(Chat):
    """One row of the config `multiturn`: a model's answers, the verifier's replies, and the final answer."""

    messages: tuple[Message, ...]
    reasons: tuple[str, ...]  # for each answer, the code of the `Reason` for its rejection; "" if it was verified
    verified: bool  # True if the last answer was verified
    generator: Generator  # model that wrote the answers
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION
