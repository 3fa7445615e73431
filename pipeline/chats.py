"""Rows for training, made from a verified pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .prompts import Message as Turn
from .prompts import answer, ask, prompt_id, render_prompt
from .schema.chats import Example, Exercise, Message
from .schema.ids import chat_id
from .schema.records import Pair, Purity


def examples(pair: Pair) -> tuple[Example, ...]:
    """The pair as a chat, once answered at once and once after thinking. None if its kernel is not all that the prompt
    asks for: one that does without PyTorch's operators, for inputs of any size.

    What is thought follows from the row's own columns (`plan.md.j2`): what must be computed, what is owned, which
    kernels it takes.
    """
    if pair.purity is not Purity.PURE or not pair.shape_general:
        return ()
    return tuple(_example(pair, thinking) for thinking in ("", plan(pair)))


def exercises(pair: Pair) -> tuple[Exercise, ...]:
    """The module of the pair as a prompt."""
    prompt = _messages(ask(pair.python_code))
    row = Exercise(
        id=_id("rl", prompt),
        **_shared(pair, ("system", "write")),
        prompt=prompt,
        python_code=pair.python_code,
        init_args=pair.init_args,
        workloads=pair.workloads,
        state=pair.state,
        operators=pair.operators,
        targets=pair.verdict.targets,
        timings=pair.timings,
    )
    return (row,)


def plan(pair: Pair) -> str:
    """What there is to know before the kernel is written."""
    return render_prompt("plan", pair=pair)


def _example(pair: Pair, thinking: str) -> Example:
    messages = _messages([*ask(pair.python_code), answer(pair.triton_code, thinking)])
    return Example(
        id=_id("sft", messages),
        **_shared(pair, ("system", "write", "plan", "answer") if thinking else ("system", "write", "answer")),
        messages=messages,
        thinking=bool(thinking),
        generator=pair.generator,
    )


def _shared(pair: Pair, prompts: Sequence[str]) -> dict[str, Any]:
    return dict(
        pair=pair.id,
        prompts=tuple(prompt_id(name) for name in prompts),
        source=pair.source,
        licence=pair.licence,
        cluster=pair.cluster,
        split=pair.split,
    )


def _messages(chat: Sequence[Turn]) -> tuple[Message, ...]:
    return tuple(Message(turn["role"], turn["content"]) for turn in chat)


def _id(config: str, messages: Sequence[Message]) -> str:
    return chat_id(config, [(message.role, message.content) for message in messages])
