"""Rows for training, made from a verified pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kernelquarry.pipeline.prompts import Message as Said
from kernelquarry.pipeline.prompts import answer, ask, prompt_id, render_prompt
from kernelquarry.pipeline.schema.chats import Conversation, Example, Exercise, Message
from kernelquarry.pipeline.schema.ids import chat_id
from kernelquarry.pipeline.schema.provenance import Distillation, Turn
from kernelquarry.pipeline.schema.records import Pair, Purity

_SIZE = re.compile(r"input(\d+)_(\d+)")
_AGREEMENT = re.compile(f"{_SIZE.pattern} == {_SIZE.pattern}")
COLUMNS = "columns"  # what is thought follows from the pair's columns, by `plan.md.j2`


def examples(pair: Pair) -> tuple[Example, ...]:
    """The pair as a chat: answered at once, after thinking what its columns tell, and as each model explained it.

    None if its kernel leaves work to PyTorch's operators, which no prompt asks for.
    """
    if pair.purity is not Purity.PURE:
        return ()
    thoughts = [("", ""), (COLUMNS, plan(pair))]
    thoughts += [(explanation.distillation.model, explanation.reasoning) for explanation in pair.explanations]
    return tuple(_example(pair, by, thought) for by, thought in thoughts)


def question(pair: Pair) -> list[Said]:
    """The prompt that the pair's kernel answers: it says which inputs the kernel is for, unless it is for all."""
    return ask(pair.python_code, sizes(pair))


def sizes(pair: Pair) -> str:
    """The inputs that the pair's kernel is for, "" if their sizes are free. That two must agree is no limit."""
    if not pair.shape_general:
        return "inputs of the sizes that `get_inputs()` gives"
    limits = [guard for guard in pair.guards if not _AGREEMENT.fullmatch(guard)]
    return f"inputs with {', '.join(f'`{_named(limit, pair)}`' for limit in limits)}" if limits else ""


def _named(guard: str, pair: Pair) -> str:
    """With each size as that of an input that the module's call names."""
    tensors = pair.workloads[0].tensors
    return _SIZE.sub(lambda size: f"{tensors[int(size[1])].name}.shape[{size[2]}]", guard)


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
    messages = _messages([*question(pair), answer(pair.triton_code, thought)])
    asked = "sized" if sizes(pair) else "write"
    return Example(
        id=_id("sft", messages),
        **_shared(pair, ("system", asked, *(["plan"] if thought_by == COLUMNS else []), "answer")),
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
