"""What is code in a model's answer. Models fence it, or not, in one block or several, after thoughts, inside of prose,
JSON or tags, and stop in the middle: whatever they send, reading it ends and raises nothing.

The pieces that could be the file are looked at in turn, and the best wins: one that parses and defines `ModelNew` with
its kernels, if need be put together from several blocks; of equals the last, which is what a model settled on.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT
from kernelquarry.pipeline.schema.syntax import parse

MOST = 400_000  # characters of an answer that are read
_FENCES = 40  # that are looked at: behind them an answer is no answer
_TRIMS = 60  # lines of prose that are taken off the end of code without a fence

_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`~\n]*)$")
_OPEN = r"<(?:think|thinking|thought|reasoning|reflection)>|<\|begin_of_thought\|>|\[THINK\]|◁think▷"
_CLOSE = r"</(?:think|thinking|thought|reasoning|reflection)>|<\|end_of_thought\|>|\[/THINK\]|◁/think▷"
_TAGS = re.compile(
    rf"(?P<open>^[ \t]*(?:{_OPEN}))|(?P<close>^[ \t]*(?:{_CLOSE})|(?:{_CLOSE})[ \t]*$)", re.MULTILINE | re.IGNORECASE
)
_CHANNEL = re.compile(r"^.*<\|channel\|>\s*final\s*(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>", re.DOTALL)
_SPECIAL = re.compile(r"<\|(?:im_end|im_start|eot_id|end|return|endoftext|start_header_id|end_header_id)\|>|</s>")
_TAG = re.compile(
    r"^[ \t]*(?:</?(?:answer|code|file|kernel|output|python|solution|triton|triton_code)\b[^>\n]*>|\[/?PYTHON\]|"
    r"<!\[CDATA\[|\]\]>)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_INVISIBLE = dict.fromkeys([0, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_START = re.compile(r"""(?:import|from)\s+\w|@triton|@torch|class\s+\w+\s*[(:]|def\s+\w+\s*\(|\"\"\"|'''|#!""")
_NUMBERED = re.compile(r"^[ \t]*\d+[ \t]*[|:│][ ]?")
_PYTHON = frozenset(("", "python", "python3", "py", "triton", "python-triton"))
_QUOTE = re.compile(r"^[ \t]*> ?")
_PROMPT = re.compile(r"^(?:>>>|\.\.\.)[ ]?")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, taken apart."""

    code: str  # "" if there is none that is whole
    thinking: str  # between the tags for thoughts
    prose: str  # what was said beside the code
    truncated: bool  # it ends inside of a thought or a block of code


@dataclass(frozen=True, slots=True)
class _Block:
    code: str
    closed: bool
    language: str


def parse_answer(text: str) -> Answer:
    """Never raises; an answer without code has an empty `code`."""
    text = text[:MOST].translate(_INVISIBLE).replace("\r\n", "\n").replace("\r", "\n")
    text, thinking, thinks_on = _without_thoughts(_SPECIAL.sub("", _CHANNEL.sub("", text, count=1)))
    text = _TAG.sub("```", text)
    blocks = _blocks(text)
    rank, code = _best(_pieces(text, blocks))
    if rank < _WHOLE:
        rank, code = _best(block.code for block in blocks if block.closed and block.language in _PYTHON)
    cut = thinks_on or bool(blocks and not blocks[-1].closed)
    return Answer(_ended(code) if rank else "", thinking, _prose(text, blocks), cut and rank < _WHOLE)


_PARSES, _NAMED, _WHOLE, _COMPLETE = 1, 2, 3, 4  # how much of the file that was asked for a piece is


def _rank(code: str) -> int:
    named = f"class {CANDIDATE_ENTRY_POINT}" in code
    if not _parses(code):
        return _NAMED if named else 0
    if not named:
        return _PARSES
    return _COMPLETE if "import triton" in code and re.search(r"^@(?:\w+\.)*jit\b", code, re.MULTILINE) else _WHOLE


def _best(pieces: Iterable[str]) -> tuple[int, str]:
    """Of equals the last."""
    best = (0, "")
    for piece in pieces:
        rank = _rank(piece)
        best = (rank, piece) if rank >= best[0] else best
    return best


def _parses(code: str) -> bool:
    try:
        return bool(parse(code).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _pieces(text: str, blocks: list[_Block]) -> Iterator[str]:
    """What could be the file, the most natural last."""
    yield from _wrapped(text)
    if not any(block.closed for block in blocks):
        yield from _bare(text)
    yield "\n\n".join(block.code for block in blocks)
    yield from _spans(text)
    for first in range(len(blocks) - 1):
        yield blocks[first].code + "\n\n" + blocks[first + 1].code
    for block in blocks:
        yield from _wrapped(block.code)
        yield _plain(block.code)
        yield block.code


def _wrapped(text: str) -> Iterator[str]:
    """Code that is a string in JSON, escaped for HTML, or written with escapes in place of new lines."""
    start, end = text.find("{"), text.rfind("}")
    if f"class {CANDIDATE_ENTRY_POINT}" not in text:
        return
    if 0 <= start < end:
        with suppress(ValueError, RecursionError):
            yield from _strings(json.loads(text[start : end + 1], strict=False))
    if "&gt;" in text or "&lt;" in text or "&quot;" in text:
        yield html.unescape(text)
        yield from (block.code for block in _blocks(html.unescape(text)))
    if "\\n" in text and text.count("\n") <= 2:
        unescaped = text.replace("\\n", "\n").replace("\\t", "    ").replace('\\"', '"')
        yield unescaped.strip().strip("\"'")
        yield from (block.code for block in _blocks(unescaped))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from (block.code for block in _blocks(value))
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _bare(text: str) -> Iterator[str]:
    """Code without a fence: from a line that starts code to the last with which it parses."""
    lines = _plain(text).split("\n")
    if f"class {CANDIDATE_ENTRY_POINT}" not in text:
        return
    starts = [number for number, line in enumerate(lines) if _START.match(line)][:3]
    for start in reversed(starts):
        for end in range(len(lines), max(start, len(lines) - _TRIMS), -1):
            if lines[end - 1].strip() and _parses(piece := "\n".join(lines[start:end])):
                yield piece
                break


def _spans(text: str) -> Iterator[str]:
    """From each fence to each later one, for code that has fences in its own strings."""
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)][:_FENCES]
    if len(fences) > 2:
        for place, first in enumerate(fences):
            for last in fences[place + 2 :]:
                piece = "\n".join(lines[first + 1 : last])
                if f"class {CANDIDATE_ENTRY_POINT}" in piece:
                    yield piece


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    mark, indent, language, code = "", "", "", list[str]()
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if not mark and fence:
            mark, indent, info = fence["mark"], fence["indent"], fence["info"].strip()
            starts_code = bool(_START.match(info))
            language, code = ("", [info]) if starts_code else (info.split(" ")[0].lower(), [])
        elif mark and fence and fence["mark"].startswith(mark) and (not fence["info"].strip() or mark == "```"):
            info = fence["info"].strip()
            blocks.append(_Block(_dedent(code, indent), not info, language))
            mark, language, code = (mark, info.split(" ")[0].lower(), []) if info else ("", "", [])
        elif mark and line.rstrip().endswith(mark):
            blocks.append(_Block(_dedent([*code, line.rstrip()[: -len(mark)]], indent), True, language))
            mark = ""
        elif mark:
            code.append(line)
        if len(blocks) >= _FENCES:
            return blocks
    return [*blocks, _Block(_dedent(code, indent), False, language)] if mark else blocks


def _dedent(lines: list[str], indent: str) -> str:
    """Without the indentation of a list or quote that the fence stands in."""
    if ">" in indent:
        lines = [_QUOTE.sub("", line, count=1) for line in lines]
    return (
        textwrap.dedent("\n".join(lines))
        if indent or (lines and lines[0].startswith((" ", "\t")))
        else "\n".join(lines)
    )


def _plain(code: str) -> str:
    """Without the numbers or prompts that some models put before every line."""
    lines = [line for line in code.split("\n") if line.strip()]
    for pattern in (_NUMBERED, _PROMPT):
        if lines and sum(bool(pattern.match(line)) for line in lines) > 0.9 * len(lines):
            return "\n".join(pattern.sub("", line, count=1) for line in code.split("\n"))
    return code


def _without_thoughts(text: str) -> tuple[str, str, bool]:
    """What is left, the thoughts, and whether the last of them has no end."""
    left, thoughts, start, inside = list[str](), list[str](), 0, False
    for tag in _TAGS.finditer(text):
        if tag["open"] and not inside:
            left.append(text[start : tag.start()])
            start, inside = tag.end(), True
        elif tag["close"] and inside:
            thoughts.append(text[start : tag.start()])
            start, inside = tag.end(), False
        elif tag["close"]:  # a chat template opened the thought itself
            thoughts.append("".join(left) + text[start : tag.start()])
            left, start = [], tag.end()
    (thoughts if inside else left).append(text[start:])
    return "".join(left), "\n\n".join(filter(None, map(str.strip, thoughts))), inside


def _prose(text: str, blocks: list[_Block]) -> str:
    for block in blocks:
        text = text.replace(block.code, "", 1) if block.code else text
    return "\n".join(line for line in text.split("\n") if line.strip() and not _FENCE.match(line)).strip()


def _ended(code: str) -> str:
    return code.strip("\n") + "\n"
