"""Finds code blocks in Markdown as models write it: unclosed, in lists, or with code on the line of the fence."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

MOST_BLOCKS = 40  # further blocks are ignored
START = re.compile(r"""(?:import|from)\s+\w|@triton|@torch|class\s+\w+\s*[(:]|def\s+\w+\s*\(|\"\"\"|'''|#!""")

_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`~\n]*)$")
_TAG = re.compile(  # a tag alone on its line
    r"^[ \t]*(?:</?[a-z][\w.-]*(?:[ \t][^<>\n]*|=[\w.-]+)?>|\[/?PYTHON\]|<!\[CDATA\[|\]\]>)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_QUOTE = re.compile(r"^[ \t]*> ?")


@dataclass(frozen=True, slots=True)
class Block:
    code: str
    closed: bool
    language: str


def blocks_of(text: str) -> list[Block]:
    """The code blocks, in order. A tag alone on its line counts as a fence."""
    blocks: list[Block] = []
    mark, indent, language, code = "", "", "", list[str]()
    for line in _TAG.sub("```", text).split("\n"):
        fence = _FENCE.match(line)
        if not mark and fence:
            mark, indent, info = fence["mark"], fence["indent"], fence["info"].strip()
            starts_code = bool(START.match(info))
            language, code = ("", [info]) if starts_code else (info.split(" ")[0].lower(), [])
        elif mark and fence and fence["mark"].startswith(mark) and (not fence["info"].strip() or mark == "```"):
            info = fence["info"].strip()
            blocks.append(Block(_dedent(code, indent), not info, language))
            mark, language, code = (mark, info.split(" ")[0].lower(), []) if info else ("", "", [])
        elif mark and line.rstrip().endswith(mark):
            blocks.append(Block(_dedent([*code, line.rstrip()[: -len(mark)]], indent), True, language))
            mark = ""
        elif mark:
            code.append(line)
        if len(blocks) >= MOST_BLOCKS:
            return blocks
    return [*blocks, Block(_dedent(code, indent), False, language)] if mark else blocks


def without_blocks(text: str, blocks: list[Block]) -> str:
    """The prose around the blocks."""
    text = _TAG.sub("```", text)
    for block in blocks:
        text = text.replace(block.code, "", 1) if block.code else text
    return "\n".join(line for line in text.split("\n") if line.strip() and not _FENCE.match(line)).strip()


def _dedent(lines: list[str], indent: str) -> str:
    """The lines without the indentation of the list or quote that contains the fence."""
    if ">" in indent:
        lines = [_QUOTE.sub("", line, count=1) for line in lines]
    return (
        textwrap.dedent("\n".join(lines))
        if indent or (lines and lines[0].startswith((" ", "\t")))
        else "\n".join(lines)
    )
