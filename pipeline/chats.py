"""Rows for training, made from a verified pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .prompts import Message as Said
from .prompts import answer, ask, prompt_id, render_prompt
from .schema.chats import Conversation, Example, Exercise, Message
from .schema.ids import chat_id
from .schema.provenance import Distillation, Turn
from .schema.records import Pair, Purity

_AGREEMENT = re.compile(r"input\d+_\d+ == input\d+_\d+")
COLUMNS = "columns"  # what is thought follows from the pair's columns, by `plan.md.j2`


def examples(pair: Pair) -> tuple[Example, ...]:
    """The pair as a chat: answered at once, after thinking what its columns tell, and as each model explained it.

    None if its kernel is not all that the prompt asks for: without PyTorch's operators, for inputs of any size. That
    two inputs must agree in a size is no limit on it.
    """
    if pair.purity is not Purity.PURE or not pair.shape_general or not all(map(_AGREEMENT.fullmatch, pair.guards)):
        return ()
    thoughts = [("", ""), (COLUMNS, plan(pair))]
    thoughts += [(explanation.distillation.model, explanation.reasoning) for explanation in pair.explanations]
    return tuple(_example(pair, by, thought) for by, thought in thoughts)


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


def conversations(pair: Pair) -> tuple[Conversation, ...]:
    """How a model came to the pair, if it was told what was wrong with its answers before."""
    return tuple(_conversation(pair, found) for found in pair.distillation if len(found.turns) > 1)


def _conversation(pair: Pair, distillation: Distillation) -> Conversation:
    turns = distillation.turns
    said = [(Message("user", turn.asked), Message("assistant", _whole(turn))) for turn in turns]
    messages = (Message("system", distillation.system), *(message for exchange in said for message in exchange))
    names = tuple(dict.fromkeys(name for turn in turns for name in turn.prompts))
    return Conversation(
        id=_id("multiturn", messages),
        **{**_shared(pair, ()), "prompts": names},
        messages=messages,
        reasons=tuple(turn.reason for turn in turns),
        verified=True,
        generator=pair.generator,
    )


def _whole(turn: Turn) -> str:
    """The answer, with what was thought before it where the endpoint gave that apart."""
    return f"<think>\n{turn.thinking.strip()}\n</think>\n\n{turn.answered}" if turn.thinking.strip() else turn.answered


def plan(pair: Pair) -> str:
    """What there is to know before the kernel is written."""
    return render_prompt("plan", pair=pair)


def _example(pair: Pair, thought_by: str, thought: str) -> Example:
    messages = _messages([*ask(pair.python_code), answer(pair.triton_code, thought)])
    return Example(
        id=_id("sft", messages),
        **_shared(pair, ("system", "write", *(["plan"] if thought_by == COLUMNS else []), "answer")),
        messages=messages,
        thinking=bool(thought_by),
        thought_by=thought_by,
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


def _messages(chat: Sequence[Said]) -> tuple[Message, ...]:
    return tuple(Message(turn["role"], turn["content"]) for turn in chat)


def _id(config: str, messages: Sequence[Message]) -> str:
    return chat_id(config, [(message.role, message.content) for message in messages])
