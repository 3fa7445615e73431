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

    role: str  # `system`, `user` or `assistant`
    content: str  # text of the message


@dataclass(frozen=True, slots=True)
class Chat:
    """The columns that all training configs share."""

    id: str  # `sft_`, `rl_` or `multiturn_`, and 16 hex digits of a SHA-256 over the messages
    pair: str  # id of a row of `pairs` with the last answer, or with a verified answer to the prompt; empty if none
    # templates in `pipeline/prompts/` that the chat was rendered from, each with its digest: `write@0123456789abcdef`
    prompts: tuple[str, ...]
    source: SourceRef
    licence: Licence


@dataclass(frozen=True, slots=True)
class Example(Chat):
    """One row of the config `sft`: a chat that ends in a verified kernel of pure Triton.

    The prompt asks for a kernel for inputs of any size. If the kernel supports only some sizes, the prompt names them:
    those of `get_inputs()`, or the pair's `guards`.
    """

    messages: tuple[Message, ...]  # the chat, system first and the answer last
    thinking: bool  # true if the answer starts with `<think>`
    # source of the thinking: `columns` for the pair's columns, or the name of the model that explained the pair; empty
    # without thinking
    thought_by: str
    generator: Generator  # author of the kernel
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Exercise(Chat):
    """One row of the config `rl`: a prompt for a kernel, and the task that a verifier needs to judge an answer.

    Two kernels of one module give the same exercise.
    """

    prompt: tuple[Message, ...]  # the chat up to the answer
    python_code: str  # the reference that an answer is compared with, as in `Pair`
    init_args: str
    workloads: tuple[Workload, ...]  # calls that an answer must get right
    state: tuple[StateSpec, ...]
    operators: tuple[str, ...]
    targets: tuple[str, ...]  # GPU architectures that the pair's kernels compile for
    timings: tuple[Timing, ...]  # timing of the pair, for rewards that depend on speed
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

    messages: tuple[Message, ...]  # the chat
    reasons: tuple[str, ...]  # for each answer, the code of the `Reason` for its rejection; empty if it was verified
    verified: bool  # true if the last answer was verified
    generator: Generator  # model that wrote the answers
    cluster: str = ""
    split: str = ""
    schema_version: int = SCHEMA_VERSION
