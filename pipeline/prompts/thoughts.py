"""Removes thoughts and chat-template tokens, which some endpoints leave in an answer."""

from __future__ import annotations

import re

_NAMES = r"(?:seed:)?think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|draft"
_OPEN = rf"<(?:{_NAMES})>|<\|(?:begin_of_thought|START_THINKING)\|>|\[THINK\]|◁think▷|<unused94>"
_CLOSE = rf"</(?:{_NAMES})>|<\|(?:end_of_thought|END_THINKING)\|>|\[/THINK\]|◁/think▷|<unused95>"
_TAGS = re.compile(rf"(?P<open>^[ \t]*(?:{_OPEN}))|(?P<close>{_CLOSE})(?P<last>[ \t]*$)?", re.MULTILINE | re.IGNORECASE)
_CHANNEL = re.compile(r"^.*<\|channel\|>\s*final\s*(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>", re.DOTALL)
_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|endoftext)\|>(?=\s*(?:\n|<\||\Z))|<end_of_turn>|<\|end\|>(?=\s*<\|user\|>)|</s>(?=\s*<s>)"
)
_THOUGHT_MARK = r"(?!\|(?:begin_of_thought|end_of_thought|START_THINKING|END_THINKING)\|)"
_SPECIAL = re.compile(
    rf"<{_THOUGHT_MARK}\|\w+\|>|<\uff5c[^<>\uff5c\n]{{1,40}}\uff5c>|<(?:start|end)_of_turn>|</s>|<eos>"
)


def first_turn(text: str) -> str:
    """The model's first turn, without template tokens. Some models continue and invent the next request."""
    turns = _TURN_ENDS.split(_CHANNEL.sub("", text, count=1))
    return _SPECIAL.sub("", next((turn for turn in turns if turn.strip()), ""))


def split_thoughts(text: str) -> tuple[str, str, bool]:
    """(text without thoughts, thoughts, True if the last thought is unclosed)."""
    left, thoughts, start, inside = list[str](), list[str](), 0, False
    for tag in _TAGS.finditer(text):
        at_an_edge = tag["last"] is not None or not text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()].strip()
        if tag["open"] and not inside:
            left.append(text[start : tag.start()])
            start, inside = tag.end(), True
        elif tag["close"] and inside:
            thoughts.append(text[start : tag.start()])
            start, inside = tag.end(), False
        elif tag["close"] and at_an_edge:  # a chat template opened the thought itself
            thoughts.append("".join(left) + text[start : tag.start()])
            left, start = [], tag.end()
    (thoughts if inside else left).append(text[start:])
    return "".join(left), "\n\n".join(filter(None, map(str.strip, thoughts))), inside
