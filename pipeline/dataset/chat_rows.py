"""Derives training rows from verified pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from kernelquarry.pipeline import prompts
from kernelquarry.pipeline.schema.chats import Conversation, Example, Exercise, Message
from kernelquarry.pipeline.schema.ids import chat_id
from kernelquarry.pipeline.schema.provenance import Distillation, Turn
from kernelquarry.pipeline.schema.records import Pair, Purity, Row
from kernelquarry.transforms.tidy.supported_inputs import made_shapes, supported_inputs

COLUMNS = "columns"  # value of `thought_by` for a plan that `plan.md.j2` renders from the pair's columns


def examples(pair: Pair) -> tuple[Example, ...]:
    """The pair as chats: without thinking, with a plan from its columns, and with each model's explanation.

    Mixed pairs give no chat, since the prompt requires pure Triton.
    """
    if pair.purity is not Purity.PURE:
        return ()
    thoughts = [("", ""), (COLUMNS, plan(pair))]
    thoughts += [(explanation.distillation.model, explanation.reasoning) for explanation in pair.explanations]
    return tuple(_example(pair, by, thought) for by, thought in thoughts)


def pair_prompt(pair: Pair) -> list[prompts.Message]:
    """The prompt that the pair's kernel answers."""
    return module_prompt(pair, pair.shape_general)


def module_prompt(row: Row, general: bool = True) -> list[prompts.Message]:
    """The prompt for a new kernel of the row's module.

    Args:
        general: the kernel must accept all sizes that the row's workloads vary; else those of its first workload.
    """
    by_compiler = row.triton_code and row.generator.kind == "inductor"  # others have no guards
    guards = row.guards if by_compiler else None
    sizes = supported_inputs(row.workloads, guards, general)
    shapes = made_shapes(row.shapes, row.workloads, guards, general)
    return prompts.kernel_request(row.python_code, sizes, shapes)


def exercises(pair: Pair) -> tuple[Exercise, ...]:
    """The module of the pair as a prompt."""
    prompt = _messages(module_prompt(pair))
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
    """The conversation in which a model wrote the pair's kernel, if it had to repair an answer."""
    return tuple(_conversation(pair, made) for made in pair.distillation if len(made.turns) > 1)


def _conversation(pair: Pair, distillation: Distillation) -> Conversation:
    turns = distillation.turns
    exchanges = [(Message("user", turn.asked), Message("assistant", _complete_answer(turn))) for turn in turns]
    messages = (Message("system", distillation.system), *chain.from_iterable(exchanges))
    names = tuple(dict.fromkeys(name for turn in turns for name in turn.prompts))
    return Conversation(
        id=_id("multiturn", messages),
        **{**_shared(pair, ()), "prompts": names},
        messages=messages,
        reasons=tuple(turn.reason for turn in turns),
        verified=True,
        generator=pair.generator,
    )


def _complete_answer(turn: Turn) -> str:
    """The answer, after the reasoning that the endpoint returned separately."""
    return f"<think>\n{turn.thinking.strip()}\n</think>\n\n{turn.answered}" if turn.thinking.strip() else turn.answered


def plan(pair: Pair) -> str:
    """The plan for the pair's kernel, rendered from its columns."""
    return prompts.render_prompt("plan", pair=pair)


def _example(pair: Pair, thought_by: str, thought: str) -> Example:
    messages = _messages([*pair_prompt(pair), prompts.answer(pair.triton_code, thought)])
    return Example(
        id=_id("sft", messages),
        **_shared(pair, ("system", "write", *(["plan"] if thought_by == COLUMNS else []), "answer")),
        messages=messages,
        thinking=bool(thought_by),
        thought_by=thought_by,
        generator=pair.generator,
    )


def _shared(pair: Pair, templates: Sequence[str]) -> dict[str, Any]:
    return dict(
        pair=pair.id,
        prompts=tuple(prompts.prompt_id(name) for name in templates),
        source=pair.source,
        licence=pair.licence,
        cluster=pair.cluster,
        split=pair.split,
    )


def _messages(chat: Sequence[prompts.Message]) -> tuple[Message, ...]:
    return tuple(Message(turn["role"], turn["content"]) for turn in chat)


def _id(config: str, messages: Sequence[Message]) -> str:
    return chat_id(config, [(message.role, message.content) for message in messages])
