"""Unwraps code from anything but fences: JSON strings, tool calls, tags, patches, numbered lines."""

from __future__ import annotations

import ast
import html
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress

from kernelquarry.pipeline.schema.parse_python import parse_expression

from .fences import START

_NUMBERED = re.compile(r"^[ \t]*[L#(\[]?\d+(?:[ \t]*[|:│→)\]][ ]?|\t|[ ]{2}|[ ]*$|\.[ ]?)")
_NUMBERED_BY_ONE = re.compile(r"^[ \t]*\d+(?:[ ](?![|:│→)\]])|$)")
_PROMPT = re.compile(r"^(?:>>>|\.\.\.|In[ ]?\[\d+\]:|[ ]+\.\.\.:)(?:[ ]|$)")
_BOXED = re.compile(r"^[ \t]*(?:[│┃║|][ ]?|[╭╰┌└┏┗╔╚├][^\w\n]*$)|[ ]*[│┃║|][ \t]*$")
_STARTS = r"(?=(?:import|from)[ \t]+\w|@triton|#[ \t!])"
_BEFORE = re.compile(rf"^[^\n]*?(?:<[^<>\n]+>|\[\w+\]|<!\[CDATA\[|\"\"\"|'''|`){_STARTS}", re.MULTILINE)
_BEHIND = re.compile(r"(?:</[^<>\n]+>|\[/\w+\]|\]\]>|`)+[ \t]*$", re.MULTILINE)
_ENTITY = re.compile(r"&(?:gt|lt|quot|amp|apos|#\d+|#x[0-9a-fA-F]+);")
_BREAK = re.compile(r"<br[ ]?/?>\n?")
_STYLED = re.compile(r"</?(?:span|div|p|pre|code|b|i|font|t[dr]|table)(?:[ ][^<>\n]*)?>")
_ESCAPED = re.compile(r"\\([_*\[\]#<>`~])")
_TYPOGRAPHY: dict[int, str] = {
    **dict.fromkeys([0xA0, 0x2007, 0x202F, 0x3000], " "),
    **dict.fromkeys([0x201C, 0x201D, 0x201E], '"'),
    **dict.fromkeys([0x2018, 0x2019], "'"),
    **dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2212], "-"),
    **{0x2264: "<=", 0x2265: ">=", 0x2260: "!="},
    **{0xFEE0 + code: chr(code) for code in b"!\"#%&'()*+,-./:;<=>@[]^_`{|}~"},  # full-width forms
}
_FENCE_LINE = re.compile(r"(^[ \t>]*(?:`{3,}|~{3,})[^\n]*\n?)", re.MULTILINE)
_HUNK = re.compile(r"^(?:@@ |\*\*\* (?:Begin Patch|Add File|Update File|\d))", re.MULTILINE)
_HEADER = re.compile(r"^(?:diff |index |--- |\+\+\+ |@@|\*{3}|new file|\\ No newline)")


def clean(text: str) -> str:
    """The text with HTML escapes of operators decoded and with patches applied."""
    if "&lt;" in text or "&gt;" in text or "&amp;" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return "".join(_patched(part) if _is_patch(part) else part for part in _FENCE_LINE.split(text))


def unwrapped(text: str, entry: str) -> Iterator[str]:
    """The text under each wrapping that may apply. `entry`: text that the code contains."""
    for unwrap in (_lines, _entities, _tags, _typography, _markdown, _escapes):
        if (inner := unwrap(text)) != text:
            yield inner
    for strings in (_values(text), _quoted(text, entry)):
        if strings:
            yield "\n".join(string if "```" in string else f"```\n{string}\n```" for string in strings)


def _lines(text: str) -> str:
    """The text without line numbers, prompts or box characters, if most lines have them."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith(("```", "~~~"))]
    by_one = any(_NUMBERED_BY_ONE.match(line) and not _NUMBERED.match(line) for line in lines)
    for pattern in (_NUMBERED_BY_ONE if by_one else _NUMBERED, _PROMPT, _BOXED):
        if sum(bool(pattern.match(line)) for line in lines) > 0.7 * len(lines):
            return "\n".join(pattern.sub("", line) for line in text.split("\n"))
    return text


def _is_patch(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    added = sum(line.startswith("+") for line in lines)
    return added > 1 and (added > 0.9 * len(lines) or bool(_HUNK.search(text)))


def _patched(text: str) -> str:
    lines = [line for line in text.split("\n") if not line.startswith("-") and not _HEADER.match(line)]
    marks = ("+",) if any(map(START.match, lines)) else ("+", " ")  # some models do not mark unchanged lines
    return textwrap.dedent("\n".join(line[1:] if line[:1] in marks else line for line in lines))


def _entities(text: str) -> str:
    if _BREAK.search(text) or _ENTITY.search(text) or _STYLED.search(text):
        return html.unescape(_STYLED.sub("", _BREAK.sub("\n", text))).replace("\u00a0", " ")
    return text


def _tags(text: str) -> str:
    """The text without tags, quotes and backticks in the first and last line of the code."""
    return _BEHIND.sub("\n", _BEFORE.sub("\n", text))


def _typography(text: str) -> str:
    return text.translate(_TYPOGRAPHY)


def _markdown(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\_" in text else text


def _escapes(text: str) -> str:
    if "\\n" not in text or text.count("\n") > 2:
        return text
    return text.replace("\\n", "\n").replace("\\t", "    ").replace('\\"', '"').strip().strip("\"'")


def _values(text: str) -> list[str]:
    """The multi-line strings of a JSON value; a list of lines counts as one string."""
    for mark, end in ("{}", "[]"):
        with suppress(ValueError, RecursionError):
            return list(_texts(json.loads(text[text.index(mark) : text.rindex(end) + 1], strict=False)))
    return []


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value:
        yield value
    elif isinstance(value, list) and len(value) > 2 and all(isinstance(item, str) for item in value):
        yield "\n".join(item.rstrip("\n") for item in value)
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _quoted(text: str, entry: str) -> list[str]:
    """JSON and Python strings that contain `entry`, found by their quotes, since the text around may be malformed."""
    found: list[str] = []
    for mark, reader in _READERS:
        at = text.find(entry)
        while at >= 0:
            start, end = _quote(text, mark, at, -1), _quote(text, mark, at, 1)
            if start < 0 or end < 0:
                break
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                found.append(str(reader(text[start : end + 1])))
            at = text.find(entry, end)
    return found


_READERS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ('"', lambda text: json.loads(text, strict=False)),
    ("'", lambda text: ast.literal_eval(parse_expression(text))),
)


def _quote(text: str, mark: str, at: int, step: int) -> int:
    """The position of the nearest unescaped `mark` before or after `at`; -1 if there is none."""
    find = text.find if step > 0 else text.rfind
    while (at := find(mark, at) if step > 0 else find(mark, 0, at)) >= 0:
        before = text[:at][-20:]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return at
        at += step > 0
    return -1
